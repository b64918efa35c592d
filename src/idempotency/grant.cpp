#include "idempotency/grant.h"

#include "idempotency/cached_rows.h"
#include "idempotency/idempotency.h"
#include "server/arguments.h"
#include "server/grantee.h"
#include "server/scope.h"
#include "table/configuration_audit.h"
#include "table/own_table.h"
#include "table/restricted.h"

namespace interlock::idempotency {

extern "C" {
PG_FUNCTION_INFO_V1(grant_idempotency_scope);
PG_FUNCTION_INFO_V1(revoke_idempotency_scope);

// grant_idempotency_scope(scope, role)
Datum grant_idempotency_scope(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Datum scope = scope_argument(arguments, 0);
    const char* role = arguments.name(1, "role");
    check_grantee(role);
    Oid types[3] = {TEXTOID, TEXTOID, TEXTOID};
    Datum values[3] = {scope, CStringGetTextDatum(role),
                       CStringGetTextDatum(GetUserNameFromId(GetUserId(), false))};
    write_own_table("idempotency_grant", TRIGGER_TYPE_INSERT,
                    "INSERT INTO interlock.idempotency_grant (scope, role_name, granted_by) "
                    "VALUES ($1, $2, $3) ON CONFLICT (scope, role_name) DO NOTHING",
                    3, types, values);
    record_change(arguments,
                  {.kind = "grant", .name = TextDatumGetCString(scope), .grantee = role});
    PG_RETURN_VOID();
}

// revoke_idempotency_scope(scope, role)
Datum revoke_idempotency_scope(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Datum scope = scope_argument(arguments, 0);
    const char* role = arguments.name(1, "role");
    Oid types[2] = {TEXTOID, TEXTOID};
    Datum values[2] = {scope, CStringGetTextDatum(role)};
    uint64 revoked = write_own_table(
        "idempotency_grant", TRIGGER_TYPE_DELETE,
        "DELETE FROM interlock.idempotency_grant WHERE scope OPERATOR(pg_catalog.=) $1 "
        "AND role_name OPERATOR(pg_catalog.=) $2",
        2, types, values);
    if (revoked == 0)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("idempotency scope \"%s\" was not granted to \"%s\"",
                               TextDatumGetCString(scope), role),
                        errhint("Table interlock.idempotency_grant lists the grants.")));
    record_change(arguments,
                  {.kind = "grant", .name = TextDatumGetCString(scope), .grantee = role});
    PG_RETURN_VOID();
}
}

namespace {

enum GrantColumn : AttrNumber { kGrantScope = 1, kGrantRole };

} // namespace

constexpr MadeColumn kGrantColumns[] = {{"scope", TEXTOID, true}, {"role_name", TEXTOID, true}};

namespace {

struct CachedGrant {
    CachedRow row;
    const char* role;
    // Its OID, as of the change of roles that was the last one then.
    mutable Oid oid;
    mutable uint64 as_of;
};

} // namespace

static void read_cached(const RowValues& values, CachedRow* row) {
    auto* grant = reinterpret_cast<CachedGrant*>(row);
    grant->role = TextDatumGetCString(values[kGrantRole].value);
    grant->oid = InvalidOid;
    grant->as_of = 0;
}

const CachedTable kGrants = {{"idempotency_grant", kGrantColumns, lengthof(kGrantColumns), 2},
                             sizeof(CachedGrant),
                             read_cached};

// --- Whether a role is the user's ---------------------------------------------------------------

static uint64 role_changes = 0; // seen by this session; 0: not watched yet

static void note_role_change(Datum, CatalogCache, uint32) { role_changes++; }

static void watch_roles() {
    if (role_changes > 0)
        return;
    CacheRegisterSyscacheCallback(AUTHOID, note_role_change, 0);
    role_changes = 1;
}

static bool is_member(Oid user, Oid role) {
    return OidIsValid(role) && has_privs_of_role(user, role);
}

static bool has_role(Oid user, const CachedGrant& grant) {
    if (grant.as_of != role_changes) {
        uint64 before = role_changes; // it may change while the catalog is read
        grant.oid = get_role_oid(grant.role, true);
        grant.as_of = before;
    }
    return is_member(user, grant.oid) || strcmp(grant.role, kEverybody) == 0;
}

// --- Whether the user has a grant ----------------------------------------------------------------

static const text* all_scopes() {
    static const text* star = nullptr;
    if (star == nullptr)
        star = in_context(TopMemoryContext, [] { return cstring_to_text("*"); });
    return star;
}

static bool is_granted(const CachedRows& grants, const text* scope, Oid user) {
    watch_roles();
    auto has = [user](const CachedGrant& grant) { return has_role(user, grant); };
    return any_cached<CachedGrant>(grants, scope, has) ||
           any_cached<CachedGrant>(grants, all_scopes(), has);
}

// With the rights of the table's owner.
static uint64 read_grants(Oid table, Datum scope) {
    TablePlan plan = plan_of({table, PlanKind("idempotency_grants")}, [](Statement* statement) {
        statement->add(
            "SELECT role_name FROM interlock.idempotency_grant WHERE scope "
            "OPERATOR(pg_catalog.=) $%d OR scope OPERATOR(pg_catalog.=) '*'",
            statement->parameter(TEXTOID));
    });
    Parameters parameters(1);
    parameters.add(scope);
    CommandCounterIncrement();
    return run_plan_as_of(GetLatestSnapshot(), plan, parameters);
}

static bool is_granted_by_plan(Datum scope, Oid user) {
    bool granted = false;
    Oid table = own_table(kGrants.table.name);
    as_user(owner_of_table(table), SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS, [&] {
        with_spi([&] {
            uint64 count = read_grants(table, scope);
            for (uint64 i = 0; i < count && !granted; i++)
                granted =
                    is_grantee(user, SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1));
        });
    });
    return granted;
}

bool may_use_scope(Datum scope) {
    PreventCommandIfParallelMode("a function of interlock.idempotency"); // which takes a snapshot
    Oid user = GetUserId();
    if (superuser_arg(user))
        return true;
    const CachedRows* grants = cached_rows(kGrants);
    return grants != nullptr ? is_granted(*grants, DatumGetTextPP(scope), user)
                             : is_granted_by_plan(scope, user);
}

void require_scope(Datum scope) {
    if (may_use_scope(scope))
        return;
    const char* name = TextDatumGetCString(scope);
    const char* role = GetUserNameFromId(GetUserId(), false);
    ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                    errmsg("idempotency scope \"%s\" is not granted to role \"%s\"", name, role),
                    errhint("Grant it: SELECT interlock.grant_idempotency_scope(%s, %s);",
                            quote_literal_cstr(name), quote_literal_cstr(role))));
}

} // namespace interlock::idempotency

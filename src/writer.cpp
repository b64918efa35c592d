#include "writer.h"

#include "arguments.h"
#include "own_table.h"
#include "plan.h"

using namespace interlock;

namespace {

// Both are of class "internal": only this module sets them, always for a transaction, so that the
// server itself undoes it at rollback to a savepoint and at the end.
char* writer_setting = nullptr;
char* authority_setting = nullptr;

// What authority_setting says: the role, and "!" when it may force.
Oid set_by = InvalidOid;
bool may_force = false;

constexpr const char* kEverybody = "public";

enum class Grant { kNone, kPlain, kForce };

Grant grant_of(const char* writer, Oid user);
void set_for_transaction(const char* setting, const char* value);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(set_writer);
PG_FUNCTION_INFO_V1(sql_current_writer);
PG_FUNCTION_INFO_V1(grant_writer);
PG_FUNCTION_INFO_V1(revoke_writer);

// set_writer(writer, force)
Datum set_writer(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    bool force = arguments.boolean(1, "force");
    if (arguments.is_null(0)) {
        set_for_transaction("interlock.writer", "");
        PG_RETURN_VOID();
    }
    const char* writer = check_writer(arguments.string(0, "writer"));
    Grant grant = grant_of(writer, GetUserId());
    if (grant == Grant::kNone || (force && grant != Grant::kForce))
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                 errmsg("role \"%s\" may not %s as \"%s\"", GetUserNameFromId(GetUserId(), false),
                        grant == Grant::kNone ? "write" : "force writes", writer),
                 errhint("Whoever may call interlock.grant_writer can allow it.")));
    set_for_transaction("interlock.writer_authority",
                        psprintf("%u%s", GetUserId(), force ? "!" : ""));
    set_for_transaction("interlock.writer", writer);
    PG_RETURN_VOID();
}

Datum sql_current_writer(PG_FUNCTION_ARGS) {
    Writer writer = current_writer();
    if (writer.name == nullptr)
        PG_RETURN_NULL();
    PG_RETURN_TEXT_P(cstring_to_text(writer.name));
}
}

namespace {

void check_role(const char* role) {
    if (strcmp(role, kEverybody) != 0)
        get_role_oid(role, false);
}

// Runs a statement on interlock.writer_grant as its owner; returns the number of rows.
uint64 change_grants(const char* statement, int count, Oid* types, Datum* values) {
    uint64 changed = 0;
    as_owner_of(own_table("writer_grant"), [&] {
        with_spi([&] {
            SPI_execute_with_args(statement, count, types, values, nullptr, false, 0);
            changed = SPI_processed;
        });
    });
    return changed;
}

} // namespace

extern "C" {

// grant_writer(writer, role, may_force)
Datum grant_writer(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    const char* writer = check_writer(arguments.string(0, "writer"));
    const char* role = arguments.name(1, "role");
    check_role(role);
    Oid types[4] = {TEXTOID, TEXTOID, BOOLOID, TEXTOID};
    Datum values[4] = {CStringGetTextDatum(writer), CStringGetTextDatum(role),
                       BoolGetDatum(arguments.boolean(2, "may_force")),
                       CStringGetTextDatum(GetUserNameFromId(GetUserId(), false))};
    change_grants(
        "INSERT INTO interlock.writer_grant (writer, role_name, may_force, granted_by) "
        "VALUES ($1, $2, $3, $4) ON CONFLICT (writer, role_name) "
        "DO UPDATE SET may_force = excluded.may_force, granted_by = excluded.granted_by, "
        "granted_at = excluded.granted_at",
        4, types, values);
    PG_RETURN_VOID();
}

// revoke_writer(writer, role)
Datum revoke_writer(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    const char* writer = check_writer(arguments.string(0, "writer"));
    const char* role = arguments.name(1, "role");
    Oid types[2] = {TEXTOID, TEXTOID};
    Datum values[2] = {CStringGetTextDatum(writer), CStringGetTextDatum(role)};
    uint64 revoked = change_grants(
        "DELETE FROM interlock.writer_grant WHERE writer OPERATOR(pg_catalog.=) $1 "
        "AND role_name OPERATOR(pg_catalog.=) $2",
        2, types, values);
    if (revoked == 0)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("writer \"%s\" was not granted to \"%s\"", writer, role),
                        errhint("Table interlock.writer_grant lists the grants.")));
    PG_RETURN_VOID();
}
}

namespace {

void set_for_transaction(const char* setting, const char* value) {
    (void)set_config_option(setting, value, PGC_INTERNAL, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0,
                            false);
}

void note_authority(const char* value, void*) {
    char* end;
    set_by = static_cast<Oid>(strtoul(value, &end, 10));
    may_force = *end == '!';
}

// Calls visit(role, may_force) for each grant of the writer.
template <typename Visit>
void each_grant(const char* writer, Visit&& visit) {
    Oid table = own_table("writer_grant");
    as_owner_of(table, [&] {
        with_spi([&] {
            SPIPlanPtr plan = plan_of({table, PlanKind::kWriterGrants}, [](Statement* statement) {
                statement->add(
                    "SELECT role_name, may_force FROM interlock.writer_grant "
                    "WHERE writer OPERATOR(pg_catalog.=) $%d",
                    statement->parameter(TEXTOID));
            });
            Parameters parameters(1);
            parameters.add(CStringGetTextDatum(writer));
            uint64 count = run_plan(plan, parameters);
            for (uint64 i = 0; i < count; i++) {
                HeapTuple row = SPI_tuptable->vals[i];
                bool is_null;
                Datum force = SPI_getbinval(row, SPI_tuptable->tupdesc, 2, &is_null);
                visit(SPI_getvalue(row, SPI_tuptable->tupdesc, 1), DatumGetBool(force));
            }
        });
    });
}

bool has_role(Oid user, const char* role) {
    if (strcmp(role, kEverybody) == 0)
        return true;
    Oid oid = get_role_oid(role, true);
    return OidIsValid(oid) && has_privs_of_role(user, oid);
}

Grant grant_of(const char* writer, Oid user) {
    if (superuser_arg(user))
        return Grant::kForce;
    Grant grant = Grant::kNone;
    each_grant(writer, [&](const char* role, bool force) {
        if (grant != Grant::kForce && has_role(user, role))
            grant = force ? Grant::kForce : Grant::kPlain;
    });
    return grant;
}

} // namespace

namespace interlock {

Writer current_writer() {
    if (writer_setting == nullptr || writer_setting[0] == '\0')
        return {nullptr, false};
    if (set_by != GetUserId() && set_by != GetOuterUserId())
        return {nullptr, false};
    return {writer_setting, may_force};
}

const char* check_writer(const char* name) {
    if (name[0] == '\0')
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("writer must not be empty"),
                 errhint("Give a name that tells who writes, as 'editor' or 'importer'.")));
    if (strlen(name) > kWriterBytes)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("writer is longer than %d bytes", kWriterBytes)));
    return name;
}

bool writer_is_granted(const char* name) {
    bool granted = false;
    each_grant(name, [&](const char*, bool) { granted = true; });
    return granted;
}

void define_writer_settings() {
    DefineCustomStringVariable("interlock.writer", "Shows who the current transaction writes as.",
                               "interlock.set_writer() sets it for the rest of the transaction.",
                               &writer_setting, "", PGC_INTERNAL,
                               GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE, nullptr, nullptr, nullptr);
    DefineCustomStringVariable(
        "interlock.writer_authority", "Shows which role said who the transaction writes as.",
        "The role's OID, with \"!\" if it writes what others own, too.", &authority_setting, "",
        PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE, nullptr, note_authority, nullptr);
}

} // namespace interlock

// What PUBLIC lacks, granted to the roles of people and programs that look after the extension.
//
// Statements that users keep in scripts would miss what a later version adds, so the lists are
// here. test/t/operations/access.pl fails on a function or table that PUBLIC lacks and no list has.
//
// GRANT and REVOKE run with the caller's rights, in the present database.

#include "server/arguments.h"
#include "table/configuration_audit.h"
#include "table/own_table.h"
#include "table/plan.h"

namespace interlock::install {

namespace {

// Of one kind; null at the end.
struct TableRight {
    const char* table;   // with its schema
    const char* columns; // in parentheses; empty: all
};

struct AccessKind {
    const char* name;
    const char* functions; // a literal of name[], in both schemas
    TableRight tables[12];
};

} // namespace

// A monitor reads roles, tables and operations, and never a value of a row or a stored response.
constexpr AccessKind kKinds[] = {
    {"monitor",
     "{sweeper_status}",
     {{"interlock.sweeper", ""},
      {"interlock.lease_audit", ""},
      {"interlock.row_lock_audit", ""},
      {"interlock.writer_grant", ""},
      {"interlock.idempotency_grant", ""},
      {"interlock.idempotency_audit", ""},
      {"interlock.configuration_audit", ""},
      {"interlock.idempotency",
       "(scope, key, status, attempt, claimed_at, deadline, finished_at, expires_at, retryable, "
       "response_omitted)"},
      {"interlock.write_log",
       "(id, written_at, decision, table_name, table_owner, operation, columns, row_count, owner, "
       "writer, written_by, reason)"}}},
    {"operator",
     "{break_lease,break_leases,confirm_stop,end_grace,force_unlock_row,idempotency_forget,"
     "idempotency_sweep,reset_contention,sweep}",
     {}},
    {"administrator",
     "{define_idempotency_scope,grant_idempotency_scope,grant_writer,revoke_idempotency_scope,"
     "revoke_writer,suppress_history}",
     {}}};

static void change_access(const Arguments& arguments, const char* command, const char* preposition);

extern "C" {
PG_FUNCTION_INFO_V1(grant_access);
PG_FUNCTION_INFO_V1(revoke_access);

// grant_access(kind, role)
Datum grant_access(PG_FUNCTION_ARGS) {
    change_access(Arguments(fcinfo), "GRANT", "TO");
    PG_RETURN_VOID();
}

// revoke_access(kind, role)
Datum revoke_access(PG_FUNCTION_ARGS) {
    change_access(Arguments(fcinfo), "REVOKE", "FROM");
    PG_RETURN_VOID();
}
}

static const AccessKind& kind_argument(const Arguments& arguments, int n) {
    std::string_view given = arguments.view(n, "kind");
    for (const AccessKind& kind : kKinds)
        if (is_same_word(given, kind.name))
            return kind;
    refuse_value(
        "kind", given,
        "It is monitor, operator or administrator. An application needs none: grant it its "
        "idempotency scopes and writers.");
}

// The server would say that of a function only, and grant in part what the caller may grant in
// part.
static void require_owner() {
    if (has_privs_of_role(GetUserId(), owner_of_schema(internal_schema())))
        return;
    ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                    errmsg("must be owner of extension pg_interlock"),
                    errhint("A superuser can call it.")));
}

// With their arguments, separated by commas.
static const char* functions_of(const AccessKind& kind) {
    run_command(psprintf(
        "SELECT pg_catalog.string_agg(o.identity, ', ') FROM pg_catalog.pg_proc p CROSS JOIN "
        "LATERAL "
        "pg_catalog.pg_identify_object('pg_catalog.pg_proc'::pg_catalog.regclass, p.oid, 0) o "
        "WHERE p.pronamespace OPERATOR(pg_catalog.=) ANY (ARRAY[%u, %u]::pg_catalog.oid[]) "
        "AND p.proname OPERATOR(pg_catalog.=) ANY ('%s'::pg_catalog.name[])",
        own_schema(), internal_schema(), kind.functions));
    return SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}

static void change_access(const Arguments& arguments, const char* command,
                          const char* preposition) {
    const AccessKind& kind = kind_argument(arguments, 0);
    const char* role = arguments.name(1, "role");
    get_role_oid(role, false);
    require_schema_names();
    require_owner();
    const char* grantee = role;
    role = quote_identifier(role);
    with_spi([&] {
        run_command(psprintf("%s EXECUTE ON FUNCTION %s %s %s", command, functions_of(kind),
                             preposition, role));
        for (const TableRight* right = kind.tables; right->table != nullptr; right++)
            run_command(psprintf("%s SELECT %s ON %s %s %s", command, right->columns, right->table,
                                 preposition, role));
    });
    record_change(arguments, {.kind = "grant", .name = kind.name, .grantee = grantee});
}

} // namespace interlock::install

#include "ownership/writer.h"

#include "ownership/default_writer.h"
#include "server/arguments.h"
#include "server/grantee.h"
#include "server/lone_call.h"
#include "table/configuration_audit.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/restricted.h"
#include "table/settings_json.h"

namespace interlock::ownership {

// Of class "internal": only this module sets it, always for a transaction, so that the server
// itself undoes it at rollback to a savepoint and at the end. A line for each user that set a
// writer: "OID - writer", with "!" instead of "-" for force.
static char* writers_setting = nullptr;

namespace {

enum class Grant { kNone, kPlain, kForce };

} // namespace

static Grant grant_of(const char* writer, Oid user);
static void refuse_second_default(const char* writer, const char* role);
static void say_writer(Oid user, const char* writer, bool force);

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
        say_writer(GetUserId(), "", false);
        PG_RETURN_VOID();
    }
    const char* writer = check_writer(arguments.string(0, "writer"));
    Grant grant = grant_of(writer, GetUserId());
    if (grant == Grant::kNone || (force && grant != Grant::kForce))
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                 errmsg("role \"%s\" may not %s as \"%s\"", GetUserNameFromId(GetUserId(), false),
                        grant == Grant::kNone ? "write" : "force writes", writer),
                 errhint("Grant it: SELECT interlock.grant_writer(%s, %s%s);",
                         quote_literal_cstr(writer),
                         quote_literal_cstr(GetUserNameFromId(GetUserId(), false)),
                         force ? ", may_force => true" : "")));
    say_writer(GetUserId(), writer, force);
    warn_if_alone(fcinfo, "the writer is already reset",
                  "Call the function after BEGIN, in the transaction that writes, or let "
                  "interlock.grant_writer make the writer the default of the role.");
    PG_RETURN_VOID();
}

Datum sql_current_writer(PG_FUNCTION_ARGS) {
    Writer writer = current_writer();
    if (writer.name == nullptr)
        PG_RETURN_NULL();
    PG_RETURN_TEXT_P(cstring_to_text(writer.name));
}
}

extern "C" {

// grant_writer(writer, role, may_force, is_default)
Datum grant_writer(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    const char* writer = check_writer(arguments.string(0, "writer"));
    const char* role = arguments.name(1, "role");
    bool may_force = arguments.boolean(2, "may_force");
    bool is_default = arguments.boolean(3, "is_default");
    check_grantee(role);
    if (is_default)
        refuse_second_default(writer, role);
    constexpr int kColumns = 5;
    Oid types[kColumns] = {TEXTOID, TEXTOID, BOOLOID, BOOLOID, TEXTOID};
    Datum values[kColumns] = {CStringGetTextDatum(writer), CStringGetTextDatum(role),
                              BoolGetDatum(may_force), BoolGetDatum(is_default),
                              CStringGetTextDatum(GetUserNameFromId(GetUserId(), false))};
    write_own_table(
        "writer_grant", TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE,
        "INSERT INTO interlock.writer_grant (writer, role_name, may_force, is_default, granted_by) "
        "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (writer, role_name) "
        "DO UPDATE SET may_force = excluded.may_force, is_default = excluded.is_default, "
        "granted_by = excluded.granted_by, granted_at = excluded.granted_at",
        kColumns, types, values);
    JsonObject granted;
    granted.add_flag("may_force", may_force);
    granted.add_flag("is_default", is_default);
    record_change(arguments,
                  {.kind = "grant", .name = writer, .grantee = role, .after = granted.finish()});
    forget_default_writers();
    PG_RETURN_VOID();
}

// revoke_writer(writer, role)
Datum revoke_writer(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    const char* writer = check_writer(arguments.string(0, "writer"));
    const char* role = arguments.name(1, "role");
    Oid types[2] = {TEXTOID, TEXTOID};
    Datum values[2] = {CStringGetTextDatum(writer), CStringGetTextDatum(role)};
    uint64 revoked =
        write_own_table("writer_grant", TRIGGER_TYPE_DELETE,
                        "DELETE FROM interlock.writer_grant WHERE writer OPERATOR(pg_catalog.=) $1 "
                        "AND role_name OPERATOR(pg_catalog.=) $2",
                        2, types, values);
    forget_default_writers();
    if (revoked == 0)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("writer \"%s\" was not granted to \"%s\"", writer, role),
                        errhint("Table interlock.writer_grant lists the grants.")));
    record_change(arguments, {.kind = "grant", .name = writer, .grantee = role});
    PG_RETURN_VOID();
}
}

namespace {

// One line of the setting.
struct Said {
    Oid user;
    bool force;
    const char* writer; // not terminated; empty: none
    int length;
    const char* line;
    const char* end; // of the line
};

} // namespace

// Reads the line at `at`; false when there is none.
static bool read_line(const char* at, Said* said) {
    if (at == nullptr || *at == '\0')
        return false;
    char* rest;
    said->line = at;
    said->user = static_cast<Oid>(strtoul(at, &rest, 10));
    said->force = rest[1] == '!';
    said->writer = rest + 3;
    const char* newline = strchr(said->writer, '\n');
    said->length = static_cast<int>(newline - said->writer);
    said->end = newline + 1;
    return true;
}

static void say_writer(Oid user, const char* writer, bool force) {
    StringInfoData lines;
    initStringInfo(&lines);
    Said said;
    for (const char* at = writers_setting; read_line(at, &said); at = said.end)
        if (said.user != user)
            appendBinaryStringInfo(&lines, said.line, static_cast<int>(said.end - said.line));
    appendStringInfo(&lines, "%u %c %s\n", user, force ? '!' : '-', writer);
    (void)set_config_option("interlock.writers", lines.data, PGC_INTERNAL, PGC_S_SESSION,
                            GUC_ACTION_LOCAL, true, 0, false);
}

// The writer that the user set, false if there is none.
static bool find_said(Oid user, Said* said) {
    for (const char* at = writers_setting; read_line(at, said); at = said->end)
        if (said->user == user)
            return true;
    return false;
}

// Calls visit(role, may_force) for each grant of the writer.
template <typename Visit>
static void each_grant(const char* writer, Visit&& visit) {
    Oid table = own_table("writer_grant");
    as_owner_of(table, [&] {
        with_spi([&] {
            TablePlan plan = plan_of({table, PlanKind("writer_grants")}, [](Statement* statement) {
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

static Grant grant_of(const char* writer, Oid user) {
    if (superuser_arg(user))
        return Grant::kForce;
    Grant grant = Grant::kNone;
    each_grant(writer, [&](const char* role, bool force) {
        if (grant != Grant::kForce && is_grantee(user, role))
            grant = force ? Grant::kForce : Grant::kPlain;
    });
    return grant;
}

// Of two that are granted at once the unique index refuses one.
static void refuse_second_default(const char* writer, const char* role) {
    if (strcmp(role, kEverybody) == 0)
        refuse_argument("is_default", "must be false for a grant to everybody",
                        "A default belongs to one role.");
    const char* present = stored_default_writer(role);
    if (present == nullptr || strcmp(present, writer) == 0)
        return;
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("role \"%s\" has the default writer \"%s\" already", role, present),
                    errhint("A role has at most one default writer. Make that writer an ordinary "
                            "one first: SELECT interlock.grant_writer(%s, %s);",
                            quote_literal_cstr(present), quote_literal_cstr(role))));
}

Writer current_writer() {
    Oid user = GetUserId();
    // Code of a table's owner, for which another role's statement has taken the owner's rights,
    // does not write as that role.
    Oid outer = InSecurityRestrictedOperation() ? user : GetOuterUserId();
    Said said;
    if (find_said(user, &said) || find_said(outer, &said)) {
        if (said.length == 0)
            return {nullptr, false, nullptr};
        return {pnstrdup(said.writer, said.length), said.force, "set_writer"};
    }
    const char* writer = default_writer(user);
    if (writer == nullptr && outer != user)
        writer = default_writer(outer);
    if (writer == nullptr)
        return {nullptr, false, nullptr};
    return {pstrdup(writer), false, "role"};
}

const char* check_writer(const char* name) {
    if (name[0] == '\0')
        refuse_empty("writer", "Give the name of a writer, such as 'editor' or 'importer'.");
    if (strcmp(name, "*") == 0) // for scopes of idempotency it means all
        refuse_argument("writer", "must not be \"*\"",
                        "There is no grant for all writers. Name each one in a call of its own.");
    if (strlen(name) > kWriterBytes)
        refuse_long("writer", kWriterBytes);
    for (const char* at = name; *at != '\0'; at++)
        if (static_cast<unsigned char>(*at) < ' ')
            refuse_argument("writer", "must not contain control characters");
    return name;
}

void warn_if_ungranted(const char* writer) {
    bool granted = false;
    each_grant(writer, [&](const char*, bool) { granted = true; });
    if (!granted)
        ereport(WARNING, (errmsg("writer \"%s\" has not been granted to any role", writer),
                          errhint("Grant it to the role that writes as it: SELECT "
                                  "interlock.grant_writer(%s, 'role_name');",
                                  quote_literal_cstr(writer))));
}

void define_writer_settings() {
    DefineCustomStringVariable(
        "interlock.writers", "Shows the writer of the current transaction.",
        "A line for each role that said so by interlock.set_writer(): its OID, \"!\" if it may "
        "write what others own, and the writer.",
        &writers_setting, "", PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE, nullptr,
        nullptr, nullptr);
}

} // namespace interlock::ownership

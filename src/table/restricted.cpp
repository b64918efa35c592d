#include "table/restricted.h"

#include "table/own_table.h"
#include "table/plan.h"
#include "table/relation.h"

namespace interlock::inline table {

// A foreign key that deletes or changes rows of another table runs that table's triggers as the
// user that deletes here; one that only reads runs as the other table's owner.
static bool writes_elsewhere(const Trigger& trigger) {
    return trigger.tgfoid == F_RI_FKEY_CASCADE_DEL || trigger.tgfoid == F_RI_FKEY_SETNULL_DEL ||
           trigger.tgfoid == F_RI_FKEY_SETDEFAULT_DEL;
}

// Not the owner of a function chooses its arguments in a condition, but who made the trigger: of
// the server's functions many run what they are given (query_to_xml, table_to_xml).
static bool may_run_code(Oid function, void* owner) {
    Oid other = owner_of_function(function);
    if (!superuser_arg(other))
        return other != *static_cast<Oid*>(owner);
    char volatility = func_volatile(function);
    bool is_fixed = volatility == PROVOLATILE_STABLE && get_func_nargs(function) == 0;
    return volatility != PROVOLATILE_IMMUTABLE && !is_fixed;
}

static bool has_untrusted_function(Node* node, void* owner) {
    return node != nullptr &&
           (is_json_expression(node) || check_functions_in_node(node, may_run_code, owner) ||
            walk_expression(node, has_untrusted_function, owner));
}

// A domain has checks, and comparing values of a type runs functions of its operator class.
static bool has_untrusted_type(Oid trigger, Oid owner) {
    List* types = query_oids(
        psprintf("SELECT t.oid FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_type t ON t.oid "
                 "OPERATOR(pg_catalog.=) d.refobjid JOIN pg_catalog.pg_roles r ON r.oid "
                 "OPERATOR(pg_catalog.=) t.typowner WHERE d.classid OPERATOR(pg_catalog.=) "
                 "'pg_catalog.pg_trigger'::pg_catalog.regclass AND d.objid "
                 "OPERATOR(pg_catalog.=) %u AND d.refclassid OPERATOR(pg_catalog.=) "
                 "'pg_catalog.pg_type'::pg_catalog.regclass AND NOT r.rolsuper AND t.typowner "
                 "OPERATOR(pg_catalog.<>) %u",
                 trigger, owner));
    return types != NIL;
}

static bool has_untrusted_condition(const Trigger& trigger, Oid owner) {
    return trigger.tgqual != nullptr &&
           (has_untrusted_function(static_cast<Node*>(stringToNode(trigger.tgqual)), &owner) ||
            has_untrusted_type(trigger.tgoid, owner));
}

static const char* doing(int16 events) {
    return (events & TRIGGER_TYPE_DELETE) != 0 ? "deleting from" : "writing to";
}

void refuse_untrusted_triggers(Relation rel, int16 events) {
    Oid owner = rel->rd_rel->relowner;
    const TriggerDesc* triggers = triggers_of(rel);
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
        const Trigger& trigger = triggers->triggers[i];
        int16 fires = trigger.tgtype & events;
        if (fires == 0 || (trigger.tgisinternal && !writes_elsewhere(trigger)))
            continue;
        Oid other = trigger.tgisinternal ? owner_of_table(trigger.tgconstrrelid)
                                         : owner_of_function(trigger.tgfoid);
        if (other != owner && !superuser_arg(other))
            ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                            errmsg("%s table \"%s\" would run code of role \"%s\" with the rights "
                                   "of the table's owner",
                                   doing(fires), RelationGetRelationName(rel),
                                   GetUserNameFromId(other, true)),
                            errhint("The table's owner must also own its trigger functions, and "
                                    "the tables that refer to it with ON DELETE CASCADE or SET.")));
        if (has_untrusted_condition(trigger, owner))
            ereport(ERROR,
                    (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                     errmsg("%s table \"%s\" would run functions in the condition of trigger "
                            "\"%s\" with the rights of the table's owner",
                            doing(fires), RelationGetRelationName(rel), trigger.tgname),
                     errhint("In WHEN, call functions of the table's owner or immutable ones of "
                             "the server, or test it in the trigger's function.")));
    }
}

bool may_read_all(Relation rel, Oid user) {
    Oid relid = RelationGetRelid(rel);
    return pg_class_aclcheck(relid, user, ACL_SELECT) == ACLCHECK_OK &&
           check_enable_rls(relid, user, true) != RLS_ENABLED;
}

// Whether the message can have values of the row in it: types also refuse values as a syntax error
// (tsquery, jsonpath), or as an unknown name (regclass). The messages of 42501 are not of this
// kind.
static bool may_tell_values(int sqlstate) {
    int category = ERRCODE_TO_CATEGORY(sqlstate);
    return category == ERRCODE_DATA_EXCEPTION || category == ERRCODE_FEATURE_NOT_SUPPORTED ||
           category == ERRCODE_INVALID_SCHEMA_NAME ||
           (category == ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION &&
            sqlstate != ERRCODE_INSUFFICIENT_PRIVILEGE);
}

void raise_without_row(MemoryContext context, const char* table) {
    MemoryContextSwitchTo(context);
    ErrorData* error = CopyErrorData();
    FlushErrorState();
    int category = ERRCODE_TO_CATEGORY(error->sqlerrcode);
    bool is_of_expression = may_tell_values(error->sqlerrcode);
    if (is_of_expression || category == ERRCODE_INTEGRITY_CONSTRAINT_VIOLATION) {
        error->detail_log = psprintf("%s%s%s", error->message, error->detail != nullptr ? "\n" : "",
                                     error->detail != nullptr ? error->detail : "");
        error->detail =
            psprintf("The row is not shown to roles that cannot read table \"%s\".", table);
    }
    if (is_of_expression) {
        error->message = psprintf("could not write to table \"%s\"", table);
        error->context = nullptr;
    }
    ReThrowError(error);
}

void close_new_cursors() {
    SubTransactionId here = GetCurrentSubTransactionId();
    with_spi([&] {
        if (SPI_execute("SELECT name FROM pg_catalog.pg_cursor()", true, 0) < 0)
            elog(ERROR, "could not list cursors");
        for (uint64 i = 0; i < SPI_processed; i++) {
            Portal portal =
                SPI_cursor_find(SPI_getvalue(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1));
            if (portal != nullptr && portal->createSubid == here)
                SPI_cursor_close(portal);
        }
    });
}

uint64 write_own_table(const char* table, int16 event, const char* statement, int count, Oid* types,
                       Datum* values, const bool* nulls) {
    uint64 written = 0;
    char marks[FUNC_MAX_ARGS];
    for (int i = 0; i < count; i++)
        marks[i] = nulls != nullptr && nulls[i] ? 'n' : ' ';
    writing_as_owner(table_open(own_table(table), RowExclusiveLock), event, [&] {
        with_spi([&] {
            SPI_execute_with_args(statement, count, types, values, marks, false, 0);
            written = SPI_processed;
        });
    });
    return written;
}

} // namespace interlock::inline table

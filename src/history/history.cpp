// Enabling and disabling version history: the table beside the table, and the triggers.

#include "history/history.h"

#include "history/table.h"
#include "server/arguments.h"
#include "server/stable_text.h"
#include "sweeper/deadline.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/row.h"
#include "table/trigger_state.h"

using namespace interlock;

namespace {

constexpr const char* kTriggerName = "000_interlock_history";
constexpr const char* kTruncateName = "zzz_interlock_history_truncate"; // of what is there then
constexpr int kKeyArgument = 3; // the first of the key's names and types among the arguments
constexpr const char* kEpoch = "microseconds since 2000-01-01 UTC";

// The arguments of enable_history.
struct Request {
    int32 keep_versions; // 0: all
    int64 keep_for;      // microseconds, 0: for ever
};

Request read_request(const Arguments& arguments);
bool has_leftover(Relation rel);
void drop_triggers(Oid relid, const char* table);
Oid find_or_create_history(Oid relid);
bool goes_on(const History* present, const Request& request);
void refuse_own_history_of_partitions(Oid relid);
void create_triggers(Oid relid, const char* table, Oid history, const Request& request,
                     TimestampTz since);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(enable_history);
PG_FUNCTION_INFO_V1(disable_history);

// enable_history(rel, keep_versions, keep_for)
Datum enable_history(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Request request = read_request(arguments);
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    const TableInfo* info = table_info(rel);
    const History* present = history_of(info);
    refuse_partition(rel, present != nullptr && present->is_clone);
    require_key(rel, info);
    Oid relid = RelationGetRelid(rel);
    bool is_linked = present != nullptr && has_own_entries(rel, present);
    Oid history = is_linked ? present->table : InvalidOid;
    TimestampTz since =
        is_linked && goes_on(present, request) ? present->since : GetCurrentTimestamp();
    char* table = qualified_name(rel);
    close_table(rel); // the server refuses to alter a table that is open in this session

    with_spi([&] {
        List* states = trigger_states(relid, kTriggerName);
        List* truncate_states = trigger_states(relid, kTruncateName);
        drop_triggers(relid, table);
        refuse_own_history_of_partitions(relid);
        if (!OidIsValid(history))
            history = find_or_create_history(relid);
        create_triggers(relid, table, history, request, since);
        restore_trigger_states(kTriggerName, states);
        restore_trigger_states(kTruncateName, truncate_states);
    });
    restart_trimming(history);
    if (request.keep_versions > 0 || request.keep_for > 0)
        note_deadline(GetCurrentTimestamp());
    PG_RETURN_VOID();
}

Datum disable_history(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    Oid relid = RelationGetRelid(rel);
    if (!has_leftover(rel))
        refuse_partition(rel, require_history(rel, table_info(rel))->is_clone);
    char* table = qualified_name(rel);
    close_table(rel);
    with_spi([&] { drop_triggers(relid, table); });
    PG_RETURN_VOID();
}
}

namespace {

Request read_request(const Arguments& arguments) {
    Request request = {};
    if (!arguments.is_null(1))
        request.keep_versions = above_zero(DatumGetInt32(arguments.value(1)), "keep_versions",
                                           "Leave it out to keep all.");
    if (!arguments.is_null(2))
        request.keep_for = duration_argument(arguments.interval(2, "keep_for"), "keep_for");
    return request;
}

// Enabled as it is already: nothing has been missed.
bool goes_on(const History* present, const Request& request) {
    return present->same_key && present->enabled != TRIGGER_DISABLED &&
           present->keep_versions == request.keep_versions && present->keep_for == request.keep_for;
}

void refuse_own_history_of_partitions(Oid relid) {
    ListCell* cell;
    foreach (cell, find_all_inheritors(relid, AccessExclusiveLock, nullptr)) {
        Oid partition = lfirst_oid(cell);
        if (partition == relid || !get_rel_relispartition(partition) ||
            !OidIsValid(get_trigger_oid(partition, kTriggerName, true)))
            continue;
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("partition \"%s\" has a history of its own", get_rel_name(partition)),
                 errhint("What it has recorded stays in its history table: SELECT "
                         "interlock.disable_history(%s);",
                         quote_literal_cstr(qualified_name(partition)))));
    }
}

// The trigger of a table that was a partition.
const Trigger* find_leftover(Relation rel) {
    const TriggerDesc* triggers = rel->trigdesc;
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++)
        if (strcmp(triggers->triggers[i].tgname, kTriggerName) == 0 &&
            triggers->triggers[i].tgisclone && !rel->rd_rel->relispartition)
            return &triggers->triggers[i];
    return nullptr;
}

bool has_leftover(Relation rel) { return find_leftover(rel) != nullptr; }

// Without its parent it can be dropped.
void release_leftover(Oid relid) {
    Relation rel = table_open(relid, NoLock);
    const Trigger* leftover = find_leftover(rel);
    if (leftover != nullptr) {
        Oid trigger = leftover->tgoid;
        Relation catalog = table_open(TriggerRelationId, RowExclusiveLock);
        TriggerSetParentTrigger(catalog, trigger, InvalidOid, InvalidOid);
        table_close(catalog, RowExclusiveLock);
        CommandCounterIncrement();
    }
    table_close(rel, NoLock);
}

void drop_if_there(Oid relid, const char* table, const char* trigger) {
    if (OidIsValid(get_trigger_oid(relid, trigger, true)))
        run_command(psprintf("DROP TRIGGER \"%s\" ON %s", trigger, table));
}

// The one for TRUNCATE stays behind when the history table is dropped.
void drop_triggers(Oid relid, const char* table) {
    release_leftover(relid);
    drop_if_there(relid, table, kTriggerName);
    drop_if_there(relid, table, kTruncateName);
}

bool is_history_of_some_table(Oid relid) {
    run_command(
        psprintf("SELECT FROM pg_catalog.pg_trigger WHERE tgconstrrelid OPERATOR(pg_catalog.=) %u "
                 "AND tgfoid OPERATOR(pg_catalog.=) %u LIMIT 1",
                 relid, own_trigger_function("history_trigger")));
    return SPI_processed > 0;
}

// The history table of an earlier enable_history is continued.
bool can_be_adopted(Oid relid, Oid owner) {
    if (get_rel_relkind(relid) != RELKIND_RELATION || owner_of_table(relid) != owner)
        return false;
    Relation rel = table_open(relid, AccessShareLock);
    bool fits = has_history_columns(rel);
    table_close(rel, AccessShareLock);
    return fits && !is_history_of_some_table(relid);
}

// Default privileges are for tables that their owner fills.
void revoke_defaults(const char* table) {
    char* name = quote_literal_cstr(table);
    run_command(psprintf(
        "SELECT pg_catalog.format('REVOKE ALL ON %%s %%s FROM %%s CASCADE', CASE c.relkind WHEN "
        "'S' "
        "THEN 'SEQUENCE' ELSE 'TABLE' END, c.oid::pg_catalog.regclass, CASE WHEN r.oid IS NULL "
        "THEN 'PUBLIC' ELSE pg_catalog.quote_ident(r.rolname) END) FROM pg_catalog.pg_class c "
        "CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) a LEFT JOIN pg_catalog.pg_roles r "
        "ON r.oid OPERATOR(pg_catalog.=) a.grantee WHERE c.oid IN (%s::pg_catalog.regclass, "
        "pg_catalog.pg_get_serial_sequence(%s, 'id')::pg_catalog.regclass) AND a.grantee "
        "OPERATOR(pg_catalog.<>) c.relowner GROUP BY 1",
        name, name));
    SPITupleTable* commands = SPI_tuptable;
    for (uint64 i = 0, count = SPI_processed; i < count; i++)
        run_command(SPI_getvalue(commands->vals[i], commands->tupdesc, 1));
}

void create_table(const char* table, Oid owner) {
    StringInfoData text;
    initStringInfo(&text);
    const char* separator = "(";
    for (const HistoryColumn& column : history_columns) {
        appendStringInfo(&text, "%s%s %s", separator, quote_identifier(column.name),
                         column.definition);
        separator = ", ";
    }
    run_command(psprintf("CREATE TABLE %s %s)", table, text.data));
    run_command(
        psprintf("CREATE INDEX ON %s ((pg_catalog.jsonb_hash_extended(key, 0)), id)", table));
    if (owner != GetUserId()) // an administrator
        run_command(psprintf("ALTER TABLE %s OWNER TO %s", table,
                             quote_identifier(GetUserNameFromId(owner, false))));
    revoke_defaults(table);
}

// <table>_history, with a number if that is taken by something else.
Oid find_or_create_history(Oid relid) {
    Oid schema = get_rel_namespace(relid);
    Oid owner = owner_of_table(relid);
    for (int number = 0;; number++) {
        char* suffix = number == 0 ? pstrdup("history") : psprintf("history%d", number);
        char* name = makeObjectName(get_rel_name(relid), nullptr, suffix);
        Oid found = get_relname_relid(name, schema);
        if (OidIsValid(found) && can_be_adopted(found, owner))
            return found;
        if (OidIsValid(found))
            continue;
        create_table(quote_qualified_identifier(get_namespace_name(schema), name), owner);
        return get_relname_relid(name, schema);
    }
}

// The type as it is written in the trigger's arguments, independent of quote_all_identifiers.
char* type_name(Oid relid, const char* column) {
    Oid type = get_atttype(relid, get_attnum(relid, column));
    char* name = nullptr;
    with_settings([&] {
        if (quote_all_identifiers)
            (void)set_config_option("quote_all_identifiers", "off", PGC_USERSET, PGC_S_SESSION,
                                    GUC_ACTION_SAVE, true, 0, false);
        name =
            format_type_extended(type, -1, FORMAT_TYPE_FORCE_QUALIFY | FORMAT_TYPE_ALLOW_INVALID);
    });
    return name;
}

void create_triggers(Oid relid, const char* table, Oid history, const Request& request,
                     TimestampTz since) {
    StringInfoData text;
    initStringInfo(&text);
    // A constraint trigger, for the link to the other table; it has no CREATE OR REPLACE.
    appendStringInfo(
        &text,
        "CREATE CONSTRAINT TRIGGER \"%s\" AFTER INSERT OR UPDATE OR DELETE ON %s FROM %s "
        "NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION %s(",
        kTriggerName, table, qualified_name(history), own_trigger_function_name("history_trigger"));
    if (request.keep_versions > 0)
        appendStringInfo(&text, "'%d', ", request.keep_versions);
    else
        appendStringInfoString(&text, "'', ");
    if (request.keep_for > 0)
        appendStringInfo(&text, "'" INT64_FORMAT " microseconds', ", request.keep_for);
    else
        appendStringInfoString(&text, "'', ");
    appendStringInfo(&text, "'" INT64_FORMAT " %s'", since, kEpoch);
    ListCell* cell;
    foreach (cell, key_column_names(relid)) {
        const char* column = static_cast<char*>(lfirst(cell));
        appendStringInfo(&text, ", %s, %s", quote_literal_cstr(column),
                         quote_literal_cstr(type_name(relid, column)));
    }
    appendStringInfoChar(&text, ')');
    run_command(text.data);
    run_command(
        psprintf("CREATE TRIGGER \"%s\" BEFORE TRUNCATE ON %s FOR EACH STATEMENT "
                 "EXECUTE FUNCTION %s()",
                 kTruncateName, table, own_trigger_function_name("history_truncate_trigger")));
}

// --- The arguments of the trigger ----------------------------------------------------------------

bool is_plain(Oid type) {
    type = getBaseType(type);
    switch (type) {
    case TIMESTAMPTZOID:
        return false;
    default:
        return prints_alike(type);
    }
}

// The table was a partition, too.
bool is_clone(Oid root, const char* name) {
    Relation rel = table_open(root, AccessShareLock);
    const TriggerDesc* triggers = rel->trigdesc;
    bool clone = false;
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++)
        if (strcmp(triggers->triggers[i].tgname, name) == 0)
            clone = triggers->triggers[i].tgisclone;
    table_close(rel, AccessShareLock);
    return clone;
}

// Any role can create a trigger with any arguments on a table of its own: reading them raises no
// error.
void load_settings(History* history, const Trigger* trigger) {
    history->since = DT_NOEND;
    if (trigger->tgnargs < kKeyArgument)
        return;
    long versions = strtol(trigger->tgargs[0], nullptr, 10);
    int64 longest = 10 * INT64CONST(366) * USECS_PER_DAY; // as long as enable_history takes
    history->keep_versions = static_cast<int32>(Max(0, Min(versions, PG_INT32_MAX)));
    history->keep_for = Max(0, Min(strtoll(trigger->tgargs[1], nullptr, 10), longest));
    char* end;
    TimestampTz since = strtoll(trigger->tgargs[2], &end, 10);
    if (end != trigger->tgargs[2] && IS_VALID_TIMESTAMP(since))
        history->since = since;
}

void load_history_key(History* history, TupleDesc columns, const Trigger* trigger) {
    List* names = key_column_names(history->root);
    history->same_key = names != NIL && 2 * list_length(names) == trigger->tgnargs - kKeyArgument;
    history->plain_key = true;
    for (int i = 0; i < list_length(names); i++) {
        const char* name = static_cast<char*>(list_nth(names, i));
        AttrNumber column = find_attribute(columns, name);
        if (column == InvalidAttrNumber) // renamed meanwhile: the relation is loaded again
            continue;
        history->key = bms_add_member(history->key, column);
        history->plain_key =
            history->plain_key && is_plain(TupleDescAttr(columns, column - 1)->atttypid);
        int key = kKeyArgument + 2 * i;
        history->same_key = history->same_key && strcmp(name, trigger->tgargs[key]) == 0 &&
                            strcmp(type_name(history->root, name), trigger->tgargs[key + 1]) == 0;
    }
}

} // namespace

namespace interlock {

void load_history(TableInfo* info, const Trigger* trigger) {
    TupleDesc columns = info->columns;
    Oid root = root_of_trigger(info->relid, trigger);
    info->parts[history_part] = nullptr;
    if (trigger->tgisclone && is_clone(root, trigger->tgname))
        return;
    auto* history = static_cast<History*>(palloc0(sizeof(History)));
    info->parts[history_part] = history;
    history->trigger = pstrdup(trigger->tgname);
    if (get_rel_relkind(trigger->tgconstrrelid) == RELKIND_RELATION)
        history->table = trigger->tgconstrrelid;
    history->root = root;
    history->same_owner = owner_of_table(history->table) == owner_of_table(root);
    history->enabled = trigger->tgenabled;
    history->is_clone = trigger->tgisclone;
    load_history_key(history, columns, trigger);
    Bitmapset* stored = nullptr;
    for (int i = 0; i < columns->natts; i++) {
        Form_pg_attribute attribute = TupleDescAttr(columns, i);
        if (attribute->attisdropped)
            continue;
        if (is_stored(attribute))
            stored = bms_add_member(stored, i + 1);
        else
            history->left_out = bms_add_member(history->left_out, i + 1);
    }
    history->row_members = json_members(columns, stored);
    history->key_members = json_members(columns, history->key);
    load_settings(history, trigger);
}

const History* require_history(Relation rel, const TableInfo* info) {
    if (history_of(info) == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("table \"%s\" has no history", RelationGetRelationName(rel)),
                        errhint("Its owner can enable it: %s", call_for("enable_history", rel))));
    return history_of(info);
}

namespace {

Oid owner_of_root(Relation rel, const History* history) {
    return history->root == RelationGetRelid(rel) ? rel->rd_rel->relowner
                                                  : owner_of_table(history->root);
}

[[noreturn]] void raise_entries_of_other(Relation rel, const History* history) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("history of table \"%s\" is in a table of another role",
                           RelationGetRelationName(rel)),
                    errdetail("Trigger \"%s\" names it.", history->trigger),
                    errhint("Give both tables to one owner with ALTER TABLE ... OWNER TO, or stop "
                            "recording: %s",
                            call_for("disable_history", rel))));
}

} // namespace

bool has_own_entries(Relation rel, const History* history) {
    return OidIsValid(history->table) &&
           owner_of_table(history->table) == owner_of_root(rel, history);
}

Relation open_entries(Relation rel, const History* history, LOCKMODE mode) {
    if (!OidIsValid(history->table))
        raise_forged(rel, history->trigger, "enable_history");
    if (!history->same_owner && !has_own_entries(rel, history))
        raise_entries_of_other(rel, history);
    Relation entries = try_relation_open(history->table, mode);
    if (entries == nullptr || entries->rd_rel->relkind != RELKIND_RELATION)
        raise_forged(rel, history->trigger, "enable_history");
    if (entries->rd_rel->relowner != owner_of_root(rel, history))
        raise_entries_of_other(rel, history);
    return entries;
}

Relation open_readable_entries(Relation rel, const History* history, LOCKMODE mode) {
    Relation entries = open_entries(rel, history, mode);
    if (!has_entry_columns(entries))
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("history of table \"%s\" cannot be read: a column of table \"%s\" "
                        "is gone or has another type",
                        RelationGetRelationName(rel), RelationGetRelationName(entries)),
                 errhint("Give it its columns back, or begin a new table: %s %s",
                         call_for("disable_history", rel), call_for("enable_history", rel))));
    return entries;
}

Datum history_key(const TableInfo* info, const RowValues& row) {
    const History* history = history_of(info);
    Datum key = 0;
    auto make_key = [&] { key = members_to_jsonb(info->columns, history->key_members, row); };
    if (history->plain_key)
        make_key();
    else
        printing_alike(true, make_key);
    return key;
}

Datum history_key(const TableInfo* info, const Key& key) {
    int count = info->columns->natts;
    RowValues row = {static_cast<Datum*>(palloc0(sizeof(Datum) * count)),
                     static_cast<bool*>(palloc(sizeof(bool) * count))};
    memset(row.nulls, true, count);
    for (int i = 0; i < info->key.count; i++) {
        AttrNumber column = info->key.columns[i].attnum;
        row.values[column - 1] = key.values[i];
        row.nulls[column - 1] = false;
        // Stored values are padded.
        if (info->key.columns[i].type == BPCHAROID)
            row.values[column - 1] = DirectFunctionCall3(
                bpchar, key.values[i],
                Int32GetDatum(TupleDescAttr(info->columns, column - 1)->atttypmod),
                BoolGetDatum(false));
    }
    return history_key(info, row);
}

void add_entry_key(Statement* statement, int key) {
    statement->add(
        " WHERE pg_catalog.jsonb_hash_extended(h.key, 0) OPERATOR(pg_catalog.=) "
        "pg_catalog.jsonb_hash_extended($%d, 0) AND h.key OPERATOR(pg_catalog.=) $%d",
        key, key);
}

} // namespace interlock

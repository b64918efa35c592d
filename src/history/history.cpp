// Enabling and disabling version history: the history table, and the triggers.

#include "history/history.h"

#include "history/partition.h"
#include "history/table.h"
#include "ownership/writer.h"
#include "server/stable_text.h"
#include "sweeper/deadline.h"
#include "table/configuration_audit.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/row.h"
#include "table/trigger_state.h"
#include "version/version.h"

namespace interlock::history {

constexpr const char* kTriggerName = "000_interlock_history";
constexpr const char* kTruncateName = "zzz_interlock_history_truncate"; // of what is there then

static HistorySettings read_request(const Arguments& arguments);
static bool has_leftover(Relation rel);
static const char* present_trigger(const History* present);
static void drop_triggers(Oid relid, const char* table, const char* trigger);
static Oid find_or_create_history(Oid relid, bool has_partitions);
static void add_partitions(Oid history, int64 width);
static void check_ignored_columns(Relation rel, const TableInfo* info,
                                  const HistorySettings& request);
static void warn_of_unknown_writers(const HistorySettings& request);
static TimestampTz complete_since(const History* present, const HistorySettings& request);
static void refuse_own_history_of_partitions(Oid relid);
static void create_triggers(Oid relid, const char* table, Oid history,
                            const HistorySettings& request);
static void create_transaction_index(Oid history);

extern "C" {
PG_FUNCTION_INFO_V1(enable_history);
PG_FUNCTION_INFO_V1(disable_history);

// enable_history(rel, keep_versions, keep_for, ignore_columns, ignore_writers, notify,
// record_markers, partition_by, whole_every)
Datum enable_history(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    HistorySettings request = read_request(arguments);
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    TableChange change = begin_change(arguments, rel);
    const TableInfo* info = table_info(rel);
    const History* present = history_of(info);
    refuse_partition(rel, present != nullptr && present->is_clone);
    require_key(rel, info);
    check_ignored_columns(rel, info, request);
    Oid relid = RelationGetRelid(rel);
    bool is_linked = present != nullptr && has_own_entries(rel, present);
    Oid history = is_linked ? present->table : InvalidOid;
    request.since = is_linked ? complete_since(present, request) : GetCurrentTimestamp();
    char* table = qualified_name(rel);
    const char* trigger = present_trigger(present);
    close_table(rel); // the server refuses to alter a table that is open in this session

    with_spi([&] {
        List* states = trigger_states(relid, trigger);
        List* truncate_states = trigger_states(relid, kTruncateName);
        drop_triggers(relid, table, trigger);
        refuse_own_history_of_partitions(relid);
        if (!OidIsValid(history))
            history = find_or_create_history(relid, request.partition_by > 0);
        if (request.partition_by > 0)
            add_partitions(history, request.partition_by);
        create_triggers(relid, table, history, request);
        restore_trigger_states(kTriggerName, states);
        restore_trigger_states(kTruncateName, truncate_states);
        if (request.notify != Notify::kOff)
            create_transaction_index(history);
    });
    record_change(change);
    warn_of_unknown_writers(request);
    restart_trimming(history);
    if (request.keep_versions > 0 || request.keep_for > 0)
        note_deadline(GetCurrentTimestamp());
    PG_RETURN_VOID();
}

Datum disable_history(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    TableChange change = begin_change(arguments, rel);
    Oid relid = RelationGetRelid(rel);
    if (!has_leftover(rel))
        refuse_partition(rel, require_history(rel, table_info(rel))->is_clone);
    char* table = qualified_name(rel);
    const char* trigger = present_trigger(history_of(table_info(rel)));
    close_table(rel);
    with_spi([&] { drop_triggers(relid, table, trigger); });
    record_change(change);
    PG_RETURN_VOID();
}
}

[[noreturn]] static void refuse_twice(const char* kind, const char* name) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("%s \"%s\" is named twice", kind, name)));
}

static NameList ignored_columns_argument(const Arguments& arguments) {
    NameList names = arguments.names(3, "ignore_columns");
    for (int i = 0; i < names.count; i++)
        if (has_name({names.names, i}, names[i]))
            refuse_twice("column", names[i]);
    return names;
}

// As many as a statement can name without being hard to read; each write of a writer looks for it
// among them.
static NameList ignored_writers_argument(const Arguments& arguments) {
    constexpr int kMostWriters = 100;
    Datum* values;
    bool* nulls;
    int count;
    deconstruct_array(DatumGetArrayTypeP(arguments.required(4, "ignore_writers")), TEXTOID, -1,
                      false, TYPALIGN_INT, &values, &nulls, &count);
    if (count > kMostWriters)
        refuse_argument("ignore_writers",
                        psprintf("must not have more than %d elements", kMostWriters));
    auto** names = static_cast<const char**>(palloc(sizeof(char*) * (count + 1)));
    for (int i = 0; i < count; i++) {
        if (nulls[i])
            refuse_nulls("ignore_writers");
        names[i] = ownership::check_writer(TextDatumGetCString(values[i]));
        if (has_name({names, i}, names[i]))
            refuse_twice("writer", names[i]);
    }
    return {names, count};
}

// Each statement that reads the history opens all partitions.
static int64 partition_argument(const Arguments& arguments, const HistorySettings& request) {
    constexpr const char* kName = "partition_by";
    constexpr int kMostPartitions = 100;
    int64 width = duration_argument(arguments.interval(7, kName), kName);
    if (request.keep_for <= 0 || request.keep_versions > 0)
        refuse_argument(kName, "needs keep_for, and no keep_versions",
                        "Partitions can be dropped only if keep_for alone decides.");
    if (width < USECS_PER_SEC || request.keep_for / width > kMostPartitions)
        refuse_argument(kName,
                        psprintf("must be at least one second, and at least one %dth of "
                                 "keep_for",
                                 kMostPartitions),
                        "For example, partition_by => '7 days' with keep_for => '90 days'.");
    return width;
}

static HistorySettings read_request(const Arguments& arguments) {
    HistorySettings request = {};
    if (!arguments.is_null(1))
        request.keep_versions = above_zero(DatumGetInt32(arguments.value(1)), "keep_versions",
                                           "Leave it out to keep all.");
    if (!arguments.is_null(2))
        request.keep_for = duration_argument(arguments.interval(2, "keep_for"), "keep_for");
    request.ignored_columns = ignored_columns_argument(arguments);
    request.ignored_writers = ignored_writers_argument(arguments);
    request.notify = notify_argument(arguments, 5);
    request.record_markers = arguments.boolean(6, "record_markers");
    if (!arguments.is_null(7))
        request.partition_by = partition_argument(arguments, request);
    request.whole_every = DatumGetInt32(arguments.required(8, "whole_every"));
    if (request.whole_every < 1 || request.whole_every > kMostWholeEvery)
        refuse_argument("whole_every", psprintf("must be between 1 and %d", kMostWholeEvery),
                        "1 stores the whole row in each entry. 16 is for wide tables.");
    return request;
}

// A row under another key is another row, and each update moves the version.
static void check_ignored_columns(Relation rel, const TableInfo* info,
                                  const HistorySettings& request) {
    const version::Versioning* versioning = version::versioning_of(info);
    for (const char* name : request.ignored_columns) {
        AttrNumber column = column_number(rel, name);
        if (bms_is_member(column, info->key.attnums))
            ereport(ERROR,
                    (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                     errmsg("column \"%s\" is part of the key and cannot be ignored", name)));
        if (versioning != nullptr && column == versioning->column)
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("version column \"%s\" cannot be ignored", name),
                            errhint("Leave it out: an update that moves only it and "
                                    "ignored columns is ignored.")));
    }
}

static void warn_of_unknown_writers(const HistorySettings& request) {
    for (const char* writer : request.ignored_writers)
        ownership::warn_if_ungranted(writer);
}

// Enabled as it is already, or with another keep_for: nothing has been missed since then.
static TimestampTz complete_since(const History* present, const HistorySettings& request) {
    TimestampTz now = GetCurrentTimestamp();
    if (!present->same_key || present->enabled == TRIGGER_DISABLED ||
        present->keep_versions != request.keep_versions || !ignores_the_same(*present, request))
        return now;
    // Older entries may have been removed already.
    if (present->keep_for != request.keep_for && present->keep_for > 0)
        return Max(present->since, now - present->keep_for);
    return present->since;
}

static bool has_history_trigger(Oid relid) {
    Relation rel = table_open(relid, NoLock);
    bool found = find_trigger(rel, "history_trigger") != nullptr;
    table_close(rel, NoLock);
    return found;
}

static void refuse_own_history_of_partitions(Oid relid) {
    ListCell* cell;
    foreach (cell, find_all_inheritors(relid, AccessExclusiveLock, nullptr)) {
        Oid partition = lfirst_oid(cell);
        if (partition == relid || !get_rel_relispartition(partition) ||
            !has_history_trigger(partition))
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
static const Trigger* find_leftover(Relation rel) {
    const TriggerDesc* triggers = triggers_of(rel);
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++)
        if (triggers->triggers[i].tgisclone && !rel->rd_rel->relispartition &&
            trigger_calls(&triggers->triggers[i], "history_trigger"))
            return &triggers->triggers[i];
    return nullptr;
}

static bool has_leftover(Relation rel) { return find_leftover(rel) != nullptr; }

// It may have been renamed. Of two only that goes which has the name that we gave it: the owner
// drops the other one.
static const char* present_trigger(const History* present) {
    return present != nullptr && present->twin == nullptr ? pstrdup(present->trigger)
                                                          : kTriggerName;
}

// Without its parent it can be dropped.
static void drop_leftover(Oid relid, const char* table) {
    Relation rel = table_open(relid, NoLock);
    const Trigger* leftover = find_leftover(rel);
    if (leftover != nullptr) {
        Relation catalog = table_open(TriggerRelationId, RowExclusiveLock);
        TriggerSetParentTrigger(catalog, leftover->tgoid, InvalidOid, InvalidOid);
        table_close(catalog, RowExclusiveLock);
        CommandCounterIncrement();
    }
    table_close(rel, NoLock);
    if (leftover != nullptr)
        drop_trigger(relid, table, leftover->tgname);
}

// The one for TRUNCATE stays behind when the history table is dropped.
static void drop_triggers(Oid relid, const char* table, const char* trigger) {
    drop_leftover(relid, table);
    drop_trigger(relid, table, trigger);
    drop_trigger(relid, table, kTruncateName);
}

static bool is_history_of_some_table(Oid relid) {
    run_command(
        psprintf("SELECT FROM pg_catalog.pg_trigger WHERE tgconstrrelid OPERATOR(pg_catalog.=) %u "
                 "AND tgfoid OPERATOR(pg_catalog.=) %u LIMIT 1",
                 relid, own_trigger_function("history_trigger")));
    return SPI_processed > 0;
}

// The history table of an earlier enable_history is continued.
static bool can_be_adopted(Oid relid, Oid owner) {
    char kind = get_rel_relkind(relid);
    if ((kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE) ||
        owner_of_table(relid) != owner)
        return false;
    Relation rel = table_open(relid, AccessShareLock);
    bool fits = has_history_columns(rel) && can_have_entries(rel);
    table_close(rel, AccessShareLock);
    return fits && !is_history_of_some_table(relid);
}

static void create_table(const char* table, Oid owner, bool has_partitions) {
    StringInfoData text;
    initStringInfo(&text);
    const char* separator = "(";
    for (const HistoryColumn& column : history_columns) {
        appendStringInfo(&text, "%s%s %s", separator, quote_identifier(column.name),
                         column.definition);
        separator = ", ";
    }
    // The key of a partitioned table contains the columns that decide about the partition.
    run_command(psprintf("CREATE TABLE %s %s, PRIMARY KEY (id%s))%s", table, text.data,
                         has_partitions ? ", changed_at" : "",
                         has_partitions ? " PARTITION BY RANGE (changed_at)" : ""));
    run_command(
        psprintf("CREATE INDEX ON %s ((pg_catalog.jsonb_hash_extended(key, 0)), id)", table));
    give_to_owner(table, owner);
}

// What was cut off may be what tells two tables apart.
static bool has_whole_name(Oid relid, const char* suffix) {
    return strlen(get_rel_name(relid)) + 1 + strlen(suffix) < NAMEDATALEN;
}

// <table>_history, with a number if that is taken by something else.
static Oid find_or_create_history(Oid relid, bool has_partitions) {
    Oid schema = get_rel_namespace(relid);
    Oid owner = owner_of_table(relid);
    for (int number = 0;; number++) {
        char* suffix = number == 0 ? pstrdup("history") : psprintf("history%d", number);
        char* name = makeObjectName(get_rel_name(relid), nullptr, suffix);
        Oid found = get_relname_relid(name, schema);
        if (OidIsValid(found) && has_whole_name(relid, suffix) && can_be_adopted(found, owner))
            return found;
        if (OidIsValid(found))
            continue;
        create_table(quote_qualified_identifier(get_namespace_name(schema), name), owner,
                     has_partitions);
        return get_relname_relid(name, schema);
    }
}

// An ordinary history table stays one: its entries are not copied.
static void add_partitions(Oid history, int64 width) {
    LockRelationOid(history, AccessExclusiveLock);
    Relation rel = table_open(history, NoLock);
    if (!is_partitioned(rel))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("history table \"%s\" is not partitioned", get_rel_name(history)),
                        errhint("Call disable_history, rename this table, and call enable_history "
                                "again: it creates a partitioned history table.")));
    if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("history of a temporary table cannot be partitioned"),
                        errhint("Leave out partition_by.")));
    table_close(rel, NoLock);
    create_partitions(history, width);
}

static void create_triggers(Oid relid, const char* table, Oid history,
                            const HistorySettings& request) {
    List* arguments = trigger_arguments(request);
    ListCell* cell;
    foreach (cell, key_column_names(relid)) {
        const char* column = static_cast<char*>(lfirst(cell));
        arguments = add_argument(arguments, column);
        arguments = add_argument(arguments, history_type_name(relid, column));
    }
    // A constraint trigger, for the link to the other table; it has no CREATE OR REPLACE.
    run_command(
        psprintf("CREATE CONSTRAINT TRIGGER \"%s\" AFTER INSERT OR UPDATE OR DELETE ON %s FROM %s "
                 "NOT DEFERRABLE FOR EACH ROW EXECUTE FUNCTION %s(%s)",
                 kTriggerName, table, qualified_name(history),
                 own_trigger_function_name("history_trigger"), arguments_sql(arguments)));
    run_command(
        psprintf("CREATE TRIGGER \"%s\" BEFORE TRUNCATE ON %s FOR EACH STATEMENT "
                 "EXECUTE FUNCTION %s()",
                 kTruncateName, table, own_trigger_function_name("history_truncate_trigger")));
}

// For history_since, which readers call after each notification.
static void create_transaction_index(Oid history) {
    AttrNumber column = get_attnum(history, history_columns[kEntryTransaction].name);
    Relation rel = table_open(history, AccessShareLock);
    char* table = qualified_name(rel);
    bool found = false;
    ListCell* cell;
    foreach (cell, RelationGetIndexList(rel)) {
        Relation index = index_open(lfirst_oid(cell), AccessShareLock);
        found = found || (index->rd_index->indisvalid && index->rd_index->indnatts > 0 &&
                          index->rd_index->indkey.values[0] == column &&
                          heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, nullptr));
        index_close(index, AccessShareLock);
    }
    table_close(rel, AccessShareLock);
    if (!found)
        run_command(psprintf("CREATE INDEX ON %s (transaction, id)", table));
}

const History* require_history(Relation rel, const TableInfo* info) {
    if (history_of(info) == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("table \"%s\" has no history", RelationGetRelationName(rel)),
                        errhint("Its owner can enable it: %s", call_for("enable_history", rel))));
    return history_of(info);
}

static Oid owner_of_root(Relation rel, const History* history) {
    return history->root == RelationGetRelid(rel) ? rel->rd_rel->relowner
                                                  : owner_of_table(history->root);
}

[[noreturn]] static void raise_entries_of_other(Relation rel, const History* history) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("history of table \"%s\" is in a table of another role",
                           RelationGetRelationName(rel)),
                    errdetail("Trigger \"%s\" names it.", history->trigger),
                    errhint("Give both tables to one owner with ALTER TABLE ... OWNER TO, or stop "
                            "recording: %s",
                            call_for("disable_history", rel))));
}

bool has_own_entries(Relation rel, const History* history) {
    return OidIsValid(history->table) &&
           owner_of_table(history->table) == owner_of_root(rel, history);
}

Relation open_entries(Relation rel, const History* history, LOCKMODE mode) {
    if (!OidIsValid(history->table) || !history->well_formed)
        raise_forged(rel, history->trigger, "enable_history");
    if (!history->same_owner && !has_own_entries(rel, history))
        raise_entries_of_other(rel, history);
    Relation entries = try_relation_open(history->table, mode);
    if (entries == nullptr || !can_have_entries(entries))
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
    auto make_key = [&] {
        key = members_to_jsonb(info->columns, history->key_members, row, JsonFor::kStorage);
    };
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

} // namespace interlock::history

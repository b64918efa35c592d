// Keys that were inserted again with a version that they had had before, for advise().
//
// A writer that inserts its own first version (as ORMs do) lets such a key meet old versions: a
// save of the deleted row succeeds on the new one. No catalog shows that. A history does.
//
// The caller has not named these tables. So privileges are checked before anything is locked, no
// lock is waited for, and no code of the tables' owners runs: entries are read without a statement,
// by the indexes that enable_history created, in tables whose columns are as it made them. Tables
// whose row security applies to the caller are passed over, and triggers that are not of the owner.
//
// The cost is bounded: the newest entries of each history, and a few of each key that was inserted.

#include "history/history.h"
#include "history/table.h"
#include "server/relation_lock.h"
#include "server/result_row.h"
#include "table/own_table.h"
#include "table/peek.h"
#include "table/plan.h"
#include "table/row.h"
#include "version/version.h"

namespace interlock::history {

constexpr int kNewest = 10000;
constexpr int kReads = 10 * kNewest; // with those that are not visible, as after a rollback
constexpr int kPrevious = 16;        // entries of other keys with the same hash among them
constexpr TimestampTz kYoungest = 7 * USECS_PER_DAY; // named in findings.sql
constexpr Size kLongestKey = 8192;
constexpr Size kLongestOperation = 64;

static List* recorded_tables();
static bool look_at(Oid relid, int64* inserts);

extern "C" {
PG_FUNCTION_INFO_V1(list_reused_keys);

Datum list_reused_keys(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    ListCell* cell;
    foreach (cell, recorded_tables()) {
        Oid relid = lfirst_oid(cell);
        int64 inserts = 0;
        bool is_whole = peek(relid, "check the history", [&] { return look_at(relid, &inserts); });
        Datum values[2] = {ObjectIdGetDatum(relid), Int64GetDatum(inserts)};
        bool nulls[2] = {};
        if (is_whole && inserts > 0)
            add_result_row(output, values, nulls);
    }
    return 0;
}
}

// Those that the caller may read. A trigger FROM the history of another owner is forged.
static List* recorded_tables() {
    return query_oids(psprintf(
        "SELECT DISTINCT t.tgrelid FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON "
        "c.oid "
        "OPERATOR(pg_catalog.=) t.tgrelid JOIN pg_catalog.pg_class h ON h.oid "
        "OPERATOR(pg_catalog.=) t.tgconstrrelid AND h.relowner OPERATOR(pg_catalog.=) c.relowner "
        "WHERE t.tgfoid OPERATOR(pg_catalog.=) %u AND t.tgparentid OPERATOR(pg_catalog.=) 0 AND "
        "pg_catalog.has_schema_privilege(c.relnamespace, 'USAGE') AND "
        "pg_catalog.has_schema_privilege(h.relnamespace, 'USAGE') AND "
        "pg_catalog.has_any_column_privilege(c.oid, 'SELECT') AND "
        "pg_catalog.has_any_column_privilege(h.oid, 'SELECT') AND NOT EXISTS (SELECT FROM "
        "pg_catalog.pg_class o WHERE o.oid OPERATOR(pg_catalog.=) ANY (ARRAY[c.oid, h.oid]) AND "
        "o.relpersistence OPERATOR(pg_catalog.=) 't' AND o.relnamespace OPERATOR(pg_catalog.<>) "
        "pg_catalog.pg_my_temp_schema()) ORDER BY 1",
        own_trigger_function("history_trigger")));
}

// --- An entry ------------------------------------------------------------------------------------

constexpr EntryColumn kNeeded[] = {kEntryId,        kEntryKey,       kEntryVersion,
                                   kEntryChangedAt, kEntryOperation, kEntryTransaction,
                                   kEntryCommand};

namespace {

struct ReadEntry {
    int64 id;
    Datum key;
    int64 version;
    TimestampTz changed_at;
    std::string_view operation;
    int64 transaction;
    int64 command;
};

} // namespace

// False for one that says nothing of versions, or that no trigger of ours has written: the owner
// can write others, with nulls too where a constraint is not validated.
static bool read_entry(TupleTableSlot* slot, ReadEntry* entry) {
    slot_getsomeattrs(slot, kEntryColumns);
    const Datum* values = slot->tts_values;
    for (EntryColumn column : kNeeded)
        if (slot->tts_isnull[column])
            return false;
    if (toast_raw_datum_size(values[kEntryKey]) > kLongestKey ||
        toast_raw_datum_size(values[kEntryOperation]) > kLongestOperation)
        return false;
    const text* operation = DatumGetTextPP(values[kEntryOperation]);
    *entry = {DatumGetInt64(values[kEntryId]),
              values[kEntryKey],
              DatumGetInt64(values[kEntryVersion]),
              DatumGetTimestampTz(values[kEntryChangedAt]),
              {VARDATA_ANY(operation), VARSIZE_ANY_EXHDR(operation)},
              DatumGetInt64(values[kEntryTransaction]),
              DatumGetInt64(values[kEntryCommand])};
    return true;
}

// Whether the earlier entry is the end of a row that had this version, or a higher one. Within a
// transaction commands count, not ids.
static bool ends_above(const ReadEntry& earlier, const ReadEntry& insert) {
    bool ends = earlier.operation == "delete" || earlier.operation == "truncate" ||
                earlier.operation == "moved";
    bool is_earlier =
        earlier.transaction != insert.transaction || earlier.command <= insert.command;
    return ends && is_earlier && earlier.version >= insert.version;
}

// --- A history -----------------------------------------------------------------------------------

namespace {

// Newest first. The index keeps memory of its own for the whole scan.
struct EntryScan {
    IndexScanDesc scan;
    TupleTableSlot* slot;
    MemoryContext memory;
};

} // namespace

static EntryScan begin_entries(Relation table, Relation index, Snapshot snapshot, int keys) {
    return {begin_index_scan(table, index, snapshot, keys), table_slot_create(table, nullptr),
            CurrentMemoryContext};
}

static void end_entries(const EntryScan& entries) {
    index_endscan(entries.scan);
    ExecDropSingleTupleTableSlot(entries.slot);
}

// The next visible one, if it is among the next `left` of the index.
static bool next_slot(const EntryScan& entries, int* left) {
    auto advance = [&] {
        return index_getnext_tid(entries.scan, BackwardScanDirection) != nullptr;
    };
    auto fetch = [&] { return index_fetch_heap(entries.scan, entries.slot); };
    while (*left > 0 && in_context(entries.memory, advance)) {
        CHECK_FOR_INTERRUPTS();
        (*left)--;
        if (in_context(entries.memory, fetch))
            return true;
    }
    return false;
}

// Whether the entry of the same key before it is the end of a row that had its version.
static bool meets_old_version(const EntryScan& of_key, const ReadEntry& insert) {
    Datum hash = DirectFunctionCall2(jsonb_hash_extended, insert.key, Int64GetDatum(0));
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_INT8EQ, hash);
    ScanKeyInit(&keys[1], 2, BTLessStrategyNumber, F_INT8LT, Int64GetDatum(insert.id));
    in_context(of_key.memory, [&] {
        index_rescan(of_key.scan, keys, lengthof(keys), nullptr, 0);
        return 0;
    });
    int left = kPrevious;
    ReadEntry earlier = {};
    while (next_slot(of_key, &left))
        if (read_entry(of_key.slot, &earlier) &&
            DatumGetBool(DirectFunctionCall2(jsonb_eq, earlier.key, insert.key)))
            return ends_above(earlier, insert);
    return false;
}

static int64 count_inserts(const EntryScan& newest, const EntryScan& of_key) {
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "history entry", ALLOCSET_DEFAULT_SIZES);
    TimestampTz since = GetCurrentTimestamp() - kYoungest;
    int64 count = 0;
    int left = kReads;
    index_rescan(newest.scan, nullptr, 0, nullptr, 0);
    for (int i = 0; i < kNewest && next_slot(newest, &left); i++) {
        bool is_reused = in_context(memory, [&] {
            ReadEntry entry = {};
            return read_entry(newest.slot, &entry) && entry.operation == "insert" &&
                   entry.changed_at >= since && meets_old_version(of_key, entry);
        });
        count += is_reused ? 1 : 0;
        MemoryContextReset(memory);
    }
    MemoryContextDelete(memory);
    return count;
}

static int64 count_in(Relation table, Relation by_id, Relation by_key) {
    Snapshot snapshot = RegisterSnapshot(GetTransactionSnapshot());
    EntryScan newest = begin_entries(table, by_id, snapshot, 0);
    EntryScan of_key = begin_entries(table, by_key, snapshot, 2);
    int64 count = count_inserts(newest, of_key);
    end_entries(of_key);
    end_entries(newest);
    UnregisterSnapshot(snapshot);
    return count;
}

static void close_index(Relation index) {
    if (index != nullptr)
        index_close(index, NoLock);
}

static bool may_read_entries(Relation table) {
    Bitmapset* columns = nullptr;
    for (EntryColumn column : kNeeded)
        columns = bms_add_member(columns, column + 1);
    return bms_is_subset(columns, readable_columns(table)) &&
           check_enable_rls(RelationGetRelid(table), InvalidOid, true) != RLS_ENABLED;
}

static int64 count_in(Relation table) {
    if (table->rd_rel->relkind != RELKIND_RELATION || RELATION_IS_OTHER_TEMP(table) ||
        !has_made_columns(table) || !may_read_entries(table))
        return 0;
    Relation by_id = open_history_index(table, HistoryIndex::kId);
    Relation by_key = open_history_index(table, HistoryIndex::kKeyHash);
    int64 count = by_id != nullptr && by_key != nullptr ? count_in(table, by_id, by_key) : 0;
    close_index(by_key);
    close_index(by_id);
    return count;
}

// --- A table -------------------------------------------------------------------------------------

// The history of a table that counts versions; InvalidOid if there is none of its owner.
static Oid history_to_check(Relation rel) {
    const TableInfo* info = table_info(rel);
    const version::Versioning* versioning = version::versioning_of(info);
    const History* history = history_of(info);
    if (versioning == nullptr || !version::is_counter(versioning->kind) || history == nullptr ||
        !has_own_entries(rel, history) || bms_is_empty(readable_columns(rel)))
        return InvalidOid;
    return history->table;
}

static bool look_at_history(Oid history, Oid owner, int64* inserts) {
    if (!lock_without_waiting(history, AccessShareLock))
        return false;
    Relation table = try_relation_open(history, NoLock);
    if (table == nullptr)
        return true; // dropped meanwhile
    if (table->rd_rel->relowner == owner)
        *inserts = count_in(table);
    relation_close(table, NoLock);
    return true;
}

// Checks made before the lock are repeated after it. False when another transaction has locked the
// table or its history.
static bool look_at(Oid relid, int64* inserts) {
    if (!lock_without_waiting(relid, AccessShareLock))
        return false;
    Relation rel = try_relation_open(relid, NoLock);
    if (rel == nullptr)
        return true; // dropped meanwhile
    Oid history = RELATION_IS_OTHER_TEMP(rel) ? InvalidOid : history_to_check(rel);
    bool is_whole =
        !OidIsValid(history) || look_at_history(history, rel->rd_rel->relowner, inserts);
    relation_close(rel, NoLock);
    return is_whole;
}

} // namespace interlock::history

// The triggers that write the entries, or count what is suppressed.

#include "history.h"

#include "own_table.h"
#include "plan.h"
#include "restricted.h"
#include "row.h"
#include "row_json.h"
#include "suppression.h"
#include "sweeper_state.h"
#include "version.h"
#include "write_log.h"
#include "writer.h"

using namespace interlock;

namespace {

constexpr const char* kInsert = "insert";
constexpr const char* kUpdate = "update";
constexpr const char* kDelete = "delete";
constexpr const char* kTruncate = "truncate";
constexpr const char* kMoved = "moved"; // the row lives on under another key

// A version of a row that has become, or one that has gone.
struct Entry {
    Relation rel;
    const RelationFacts* facts;
    const char* operation;
    HeapTuple row;
    CommandId command;        // orders the entries of a key within the transaction
    HeapTuple before;         // of an update, and
    const Bitmapset* changed; // the columns in which they differ
};

Entry entry_of(const TriggerData* trigger, const RelationFacts* facts);
void count_suppressed(const TriggerData* trigger, const RelationFacts* facts,
                      const Suppression& suppression);
void capture(const Entry& entry);
bool changes_key(const Entry& entry);
void capture_truncation(Relation root);
[[noreturn]] void raise_unlinked(Relation rel);
const History* usable_history(Relation rel, const RelationFacts* facts);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(history_trigger);
PG_FUNCTION_INFO_V1(history_truncate_trigger);

Datum history_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "history_trigger", TRIGGER_EVENT_AFTER);
    const RelationFacts* facts = facts_of(trigger->tg_relation);
    if (facts->history == nullptr) {
        if (trigger->tg_trigger->tgisclone)
            return 0; // it was a partition
        raise_unlinked(trigger->tg_relation);
    }
    const History* history = usable_history(trigger->tg_relation, facts);
    Suppression suppression = suppression_of(history->root);
    if (suppression.active) {
        count_suppressed(trigger, facts, suppression);
        return 0;
    }
    Entry entry = entry_of(trigger, facts);
    if (changes_key(entry)) {
        Entry departure = entry;
        departure.operation = kMoved;
        departure.command = writing_command(trigger);
        departure.row = entry.before;
        departure.before = nullptr;
        departure.changed = nullptr;
        capture(departure);
    }
    capture(entry);
    return 0;
}

Datum history_truncate_trigger(PG_FUNCTION_ARGS) {
    auto* trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
    if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BY_TRUNCATE(trigger->tg_event) ||
        !TRIGGER_FIRED_BEFORE(trigger->tg_event))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("function \"%s\" must be called by a BEFORE TRUNCATE trigger",
                               "history_truncate_trigger"),
                        errhint("The enabling functions of pg_interlock create it.")));
    // The history table may have been dropped, and the other trigger with it.
    if (facts_of(trigger->tg_relation)->history != nullptr)
        capture_truncation(trigger->tg_relation);
    return 0;
}
}

namespace {

void raise_unlinked(Relation rel) {
    ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                    errmsg("history trigger of table \"%s\" names no history table",
                           RelationGetRelationName(rel)),
                    errhint("interlock.enable_history creates the trigger.")));
}

const History* usable_history(Relation rel, const RelationFacts* facts) {
    const History* history = facts->history;
    if (!OidIsValid(history->table))
        raise_unlinked(rel);
    if (history->key == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("table \"%s\" has history and no key that names one row",
                               RelationGetRelationName(rel)),
                        errhint("Add a key, or call interlock.disable_history.")));
    return history;
}

// The columns in which the rows differ, without those in `but`.
Bitmapset* differing_columns(TupleDesc columns, HeapTuple left, HeapTuple right,
                             const Bitmapset* but) {
    Bitmapset* differing = nullptr;
    for (int column = 1; column <= columns->natts; column++)
        if (!TupleDescAttr(columns, column - 1)->attisdropped && !bms_is_member(column, but) &&
            !same_value(columns, left, right, column))
            differing = bms_add_member(differing, column);
    return differing;
}

// Whether the transaction has replaced or deleted this version already.
bool is_superseded(HeapTupleHeader row) {
    if ((row->t_infomask & HEAP_XMAX_INVALID) != 0 || HEAP_XMAX_IS_LOCKED_ONLY(row->t_infomask))
        return false;
    return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(row));
}

// An AFTER trigger may write a row again while its first write waits for its turn here: that one
// counts from the command that wrote it. A version that is there still is the newest of its key and
// counts from now, also when its own command has deleted another one before (BEFORE triggers).
CommandId entry_command(const TriggerData* trigger) {
    if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
        return writing_command(trigger);
    HeapTuple row =
        TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple;
    return is_superseded(row->t_data) ? writing_command(trigger) : GetCurrentCommandId(false);
}

Entry entry_of(const TriggerData* trigger, const RelationFacts* facts) {
    Entry entry = {};
    entry.rel = trigger->tg_relation;
    entry.facts = facts;
    entry.row = trigger->tg_trigtuple;
    entry.command = entry_command(trigger);
    if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event)) {
        entry.operation = kInsert;
    } else if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event)) {
        // Into another partition, where an insert follows.
        bool moved = HeapTupleHeaderIndicatesMovedPartitions(entry.row->t_data);
        entry.operation = moved ? kMoved : kDelete;
    } else {
        entry.operation = kUpdate;
        entry.before = entry.row;
        entry.row = trigger->tg_newtuple;
        entry.changed =
            differing_columns(facts->columns, entry.before, entry.row, facts->history->left_out);
    }
    return entry;
}

bool changes_key(const Entry& entry) {
    return entry.before != nullptr && bms_overlap(entry.changed, entry.facts->history->key);
}

// --- Suppressed writes ---------------------------------------------------------------------------

WriteLine* count_row(const RelationFacts* facts, const char* operation, CommandId command,
                     HeapTuple row, const Suppression& suppression) {
    WriteGroup group = {WriteDecision::kSuppressed, operation, facts->history->root, command,
                        nullptr};
    return count_writes(group, 1, [&] {
        return WriteSample{history_key(facts, row), 0, 0, suppression.reason};
    });
}

void count_suppressed(const TriggerData* trigger, const RelationFacts* facts,
                      const Suppression& suppression) {
    const char* operation = TRIGGER_FIRED_BY_INSERT(trigger->tg_event)   ? kInsert
                            : TRIGGER_FIRED_BY_DELETE(trigger->tg_event) ? kDelete
                                                                         : kUpdate;
    WriteLine* line =
        count_row(facts, operation, writing_command(trigger), trigger->tg_trigtuple, suppression);
    if (!TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
        return;
    // Columns that are in the line are not compared any more.
    Bitmapset* but = bms_union(columns_seen(line, facts->relid), facts->history->left_out);
    add_columns(
        line, trigger->tg_relation,
        differing_columns(facts->columns, trigger->tg_trigtuple, trigger->tg_newtuple, but));
}

// --- Entries -------------------------------------------------------------------------------------

Datum row_without(Datum row, TupleDesc columns, const Bitmapset* left_out) {
    for (int column = -1; (column = bms_next_member(left_out, column)) >= 0;)
        row = DirectFunctionCall2(
            jsonb_delete, row,
            CStringGetTextDatum(NameStr(TupleDescAttr(columns, column - 1)->attname)));
    return row;
}

// Found out as the user who writes.
struct EntryValues {
    Datum key;
    Datum row;
    Datum before;
    const char* writer; // null: nobody
    const char* changed_by;
};

EntryValues values_of(const Entry& entry) {
    EntryValues values = {};
    const History* history = entry.facts->history;
    TupleDesc columns = entry.facts->columns;
    values.key = history_key(entry.facts, entry.row);
    values.writer = current_writer().name;
    values.changed_by = GetUserNameFromId(GetUserId(), false);
    printing_alike(false, [&] {
        values.row = row_without(row_to_jsonb(columns, entry.row), columns, history->left_out);
        if (entry.before != nullptr)
            values.before = columns_to_jsonb(columns, entry.before, entry.changed);
    });
    return values;
}

NullableDatum version_of(const Entry& entry) {
    const Versioning* versioning = entry.facts->versioning;
    if (versioning == nullptr || versioning->column == InvalidAttrNumber ||
        !is_counter(versioning->kind))
        return {0, true};
    bool is_null;
    Datum value = heap_getattr(entry.row, versioning->column, entry.facts->columns, &is_null);
    return {Int64GetDatum(token_of_datum(versioning->kind, value, is_null)), is_null};
}

constexpr int kWrittenColumns = 11;

void write_insert(Statement* statement, const char* table) {
    constexpr Oid types[kWrittenColumns] = {JSONBOID, INT8OID, TIMESTAMPTZOID, TEXTOID,
                                            TEXTOID,  TEXTOID, JSONBOID,       TEXTARRAYOID,
                                            JSONBOID, XID8OID, INT8OID};
    statement->add(
        "INSERT INTO %s (key, version, changed_at, writer, changed_by, operation, \"row\", "
        "changed, before, transaction, command) VALUES (",
        table);
    for (int i = 0; i < kWrittenColumns; i++)
        statement->add("%s$%d", i > 0 ? ", " : "", statement->parameter(types[i]));
    statement->add(")");
}

void insert_entry(const Entry& entry, const EntryValues& values, Relation table) {
    SPIPlanPtr plan =
        plan_of({RelationGetRelid(table), PlanKind::kHistoryWrite},
                [&](Statement* statement) { write_insert(statement, qualified_name(table)); });
    bool has_writer = values.writer != nullptr;
    bool is_update = entry.before != nullptr;
    Parameters parameters(kWrittenColumns);
    parameters.add(values.key);
    parameters.add(version_of(entry));
    parameters.add(TimestampTzGetDatum(GetCurrentTimestamp()));
    parameters.add(has_writer ? CStringGetTextDatum(values.writer) : 0, !has_writer);
    parameters.add(CStringGetTextDatum(values.changed_by));
    parameters.add(CStringGetTextDatum(entry.operation));
    parameters.add(values.row);
    parameters.add(is_update ? column_names(entry.facts->columns, entry.changed) : 0, !is_update);
    parameters.add(values.before, !is_update);
    parameters.add(FullTransactionIdGetDatum(GetTopFullTransactionId()));
    parameters.add(Int64GetDatum(entry.command));
    if (run_plan(plan, parameters) == 0)
        raise_suppressed(table);
}

// Policies are for readers: as a foreign key the trigger writes past them.
void capture(const Entry& entry) {
    const History* history = entry.facts->history;
    EntryValues values = values_of(entry);
    inserting_as_owner(history->table, [&](Relation table) {
        with_spi([&] { insert_entry(entry, values, table); });
    });
    if (has_retention(history))
        note_deadline(trim_time(history, GetCurrentTimestamp()));
}

// --- TRUNCATE ------------------------------------------------------------------------------------

// Calls visit(slot) for each row that the latest snapshot shows: all that are there, since nobody
// else can write any more.
template <typename Visit>
void each_row(Relation rel, Visit&& visit) {
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    TupleTableSlot* slot = table_slot_create(rel, nullptr);
    TableScanDesc scan = table_beginscan(rel, snapshot, 0, nullptr);
    while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
        CHECK_FOR_INTERRUPTS();
        visit(slot);
    }
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    UnregisterSnapshot(snapshot);
}

void count_truncation(Relation rel, const RelationFacts* facts, const Suppression& suppression) {
    CommandId command = GetCurrentCommandId(false);
    each_row(rel, [&](TupleTableSlot* slot) {
        bool should_free;
        count_row(facts, kTruncate, command, ExecFetchSlotHeapTuple(slot, false, &should_free),
                  suppression);
    });
}

void truncate_leaf(Relation rel) {
    const RelationFacts* facts = facts_of(rel);
    if (facts->history == nullptr)
        return;
    const History* history = usable_history(rel, facts);
    Suppression suppression = suppression_of(history->root);
    if (suppression.active) {
        count_truncation(rel, facts, suppression);
        return;
    }
    CommandId command = GetCurrentCommandId(true);
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "truncated row", ALLOCSET_DEFAULT_SIZES);
    each_row(rel, [&](TupleTableSlot* slot) {
        in_context(memory, [&] {
            bool should_free;
            HeapTuple row = ExecFetchSlotHeapTuple(slot, false, &should_free);
            capture({rel, facts, kTruncate, row, command, nullptr, nullptr});
            return 0;
        });
        MemoryContextReset(memory);
    });
    MemoryContextDelete(memory);
}

// TRUNCATE has locked the partitions.
void capture_truncation(Relation root) {
    if (root->rd_rel->relkind == RELKIND_RELATION) {
        truncate_leaf(root);
        return;
    }
    ListCell* cell;
    foreach (cell, find_all_inheritors(RelationGetRelid(root), AccessShareLock, nullptr)) {
        Relation rel = table_open(lfirst_oid(cell), NoLock);
        if (rel->rd_rel->relkind == RELKIND_RELATION)
            truncate_leaf(rel);
        table_close(rel, NoLock);
    }
}

} // namespace

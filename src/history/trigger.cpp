// The triggers that write the entries, or count what is suppressed.

#include "history/history.h"

#include "history/context.h"
#include "history/notify.h"
#include "history/short_entry.h"
#include "history/suppression.h"
#include "history/table.h"
#include "marker/marker.h"
#include "ownership/write_log.h"
#include "ownership/writer.h"
#include "sweeper/deadline.h"
#include "table/mechanism.h"
#include "table/restricted.h"
#include "table/row.h"
#include "version/version.h"

namespace interlock::history {

constexpr const char* kInsert = "insert";
constexpr const char* kUpdate = "update";
constexpr const char* kDelete = "delete";
constexpr const char* kTruncate = "truncate";
constexpr const char* kMoved = "moved"; // the row lives on under another key

namespace {

// A version of a row that was stored, or one that was deleted.
struct Entry {
    Relation rel;
    const TableInfo* info;
    const char* operation;
    RowValues row;
    CommandId command;        // orders the entries of a key within the transaction
    bool is_update;           // and has
    RowValues before;         // the old row, and
    const Bitmapset* changed; // the columns in which they differ
};

// Why writes have no entry, for the operation log: what suppress_history was given, or which
// argument of enable_history says so.
struct Omission {
    bool active;
    const char* reason;
};

} // namespace

constexpr const char* kIgnoredColumns = "ignore_columns";
constexpr const char* kIgnoredWriter = "ignore_writers";

static Entry entry_of(const TriggerData* trigger, const TableInfo* info);
static Omission omission_of(const History* history);
static void count_omitted(const TriggerData* trigger, const TableInfo* info,
                          const Omission& omission);
static bool changes_nothing_recorded(const Entry& entry);
static void capture(const Entry& entry);
static bool changes_key(const Entry& entry);
static void capture_truncation(Relation root);
static const History* usable_history(Relation rel, const TableInfo* info);

extern "C" {
PG_FUNCTION_INFO_V1(history_trigger);
PG_FUNCTION_INFO_V1(history_truncate_trigger);

Datum history_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "history_trigger", TRIGGER_EVENT_AFTER);
    if (fires_in_restore(trigger))
        return 0; // its entries are restored as well
    const TableInfo* info = table_info(trigger->tg_relation);
    if (history_of(info) == nullptr) {
        if (trigger->tg_trigger->tgisclone)
            return 0; // it was a partition
        raise_forged(trigger->tg_relation, trigger->tg_trigger->tgname, "enable_history");
    }
    const History* history = usable_history(trigger->tg_relation, info);
    Omission omission = omission_of(history);
    if (omission.active) {
        count_omitted(trigger, info, omission);
        return 0;
    }
    Entry entry = entry_of(trigger, info);
    if (changes_nothing_recorded(entry)) {
        if (bms_overlap(entry.changed, history->ignored))
            count_omitted(trigger, info, {true, kIgnoredColumns});
        return 0;
    }
    if (changes_key(entry)) {
        Entry departure = entry;
        departure.operation = kMoved;
        departure.command = ownership::writing_command(trigger);
        departure.row = entry.before;
        departure.is_update = false;
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
    if (history_of(table_info(trigger->tg_relation)) != nullptr)
        capture_truncation(trigger->tg_relation);
    return 0;
}
}

static const History* usable_history(Relation rel, const TableInfo* info) {
    const History* history = history_of(info);
    if (!OidIsValid(history->table))
        raise_forged(rel, history->trigger, "enable_history");
    require_own(rel, info, history, "enable_history");
    if (history->key_columns == nullptr)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("table \"%s\" has history and no key that names one row",
                        RelationGetRelationName(rel)),
                 errhint("Add a key, or stop recording: %s", call_for("disable_history", rel))));
    return history;
}

// The columns in which the rows differ, without those in `but`.
static Bitmapset* differing_columns(TupleDesc columns, const RowValues& left,
                                    const RowValues& right, const Bitmapset* but) {
    Bitmapset* differing = nullptr;
    for (int i = 0; i < columns->natts; i++) {
        AttrNumber column = i + 1;
        if (!TupleDescAttr(columns, i)->attisdropped && !bms_is_member(column, but) &&
            !equal_values(columns, column, left[column], right[column]))
            differing = bms_add_member(differing, column);
    }
    return differing;
}

// Whether the transaction has replaced or deleted this version already.
static bool is_superseded(HeapTupleHeader row) {
    if ((row->t_infomask & HEAP_XMAX_INVALID) != 0 || HEAP_XMAX_IS_LOCKED_ONLY(row->t_infomask))
        return false;
    return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(row));
}

// An AFTER trigger may write a row again while its first write waits for its turn here: that one
// counts from the command that wrote it. A version that is there still is the newest of its key and
// counts from now, also when its own command has deleted another one before (BEFORE triggers).
static CommandId entry_command(const TriggerData* trigger) {
    if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
        return ownership::writing_command(trigger);
    HeapTuple row =
        TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple;
    return is_superseded(row->t_data) ? ownership::writing_command(trigger)
                                      : GetCurrentCommandId(false);
}

static Entry entry_of(const TriggerData* trigger, const TableInfo* info) {
    Entry entry = {};
    entry.rel = trigger->tg_relation;
    entry.info = info;
    entry.row = values_of_row(info->columns, trigger->tg_trigtuple);
    entry.command = entry_command(trigger);
    if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event)) {
        entry.operation = kInsert;
    } else if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event)) {
        // Into another partition, where an insert follows.
        bool moved = HeapTupleHeaderIndicatesMovedPartitions(trigger->tg_trigtuple->t_data);
        entry.operation = moved ? kMoved : kDelete;
    } else {
        entry.operation = kUpdate;
        entry.is_update = true;
        entry.before = entry.row;
        entry.row = values_of_row(info->columns, trigger->tg_newtuple);
        entry.changed =
            differing_columns(info->columns, entry.before, entry.row, history_of(info)->left_out);
    }
    return entry;
}

static bool changes_key(const Entry& entry) {
    return entry.is_update && bms_overlap(entry.changed, history_of(entry.info)->key_columns);
}

// --- Writes without an entry ---------------------------------------------------------------------

static Omission omission_of(const History* history) {
    Suppression suppression = suppression_of(history->root);
    if (suppression.active)
        return {true, suppression.reason};
    if (history->ignored_writers.count > 0) {
        // Not a holder: those are names that anybody can take.
        const char* writer = ownership::current_writer().name;
        if (writer != nullptr && has_name(history->ignored_writers, writer))
            return {true, kIgnoredWriter};
    }
    return {false, nullptr};
}

// A value that is equal and looks different, such as 1.0 and 1.00, is stored as it looks.
static Bitmapset* columns_with_other_bytes(const Entry& entry, const Bitmapset* but) {
    TupleDesc columns = entry.info->columns;
    Bitmapset* result = nullptr;
    for (int i = 0; i < columns->natts; i++) {
        AttrNumber column = i + 1;
        if (!TupleDescAttr(columns, i)->attisdropped && !bms_is_member(column, but) &&
            !same_value(TupleDescAttr(columns, i), entry.before[column], entry.row[column]))
            result = bms_add_member(result, column);
    }
    return result;
}

static bool changes_nothing_recorded(const Entry& entry) {
    const History* history = history_of(entry.info);
    return entry.is_update && bms_is_subset(entry.changed, history->unmoved) &&
           columns_with_other_bytes(entry, bms_union(history->unmoved, history->left_out)) ==
               nullptr;
}

static ownership::WriteLine* count_row(const TableInfo* info, const char* operation,
                                       CommandId command, HeapTuple row, const Omission& omission) {
    ownership::WriteGroup group = {ownership::WriteDecision::kSuppressed, operation,
                                   history_of(info)->root, command, nullptr};
    return ownership::count_writes(group, 1, [&] {
        Datum key = history_key(info, values_of_row(info->columns, row));
        return ownership::WriteSample{key, 0, 0, omission.reason};
    });
}

static void count_omitted(const TriggerData* trigger, const TableInfo* info,
                          const Omission& omission) {
    const char* operation = TRIGGER_FIRED_BY_INSERT(trigger->tg_event)   ? kInsert
                            : TRIGGER_FIRED_BY_DELETE(trigger->tg_event) ? kDelete
                                                                         : kUpdate;
    ownership::WriteLine* line = count_row(info, operation, ownership::writing_command(trigger),
                                           trigger->tg_trigtuple, omission);
    if (!TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
        return;
    // Columns that are in the line are not compared any more.
    Bitmapset* but =
        bms_union(ownership::columns_seen(line, info->relid), history_of(info)->left_out);
    RowValues before = values_of_row(info->columns, trigger->tg_trigtuple);
    RowValues after = values_of_row(info->columns, trigger->tg_newtuple);
    ownership::add_columns(line, trigger->tg_relation,
                           differing_columns(info->columns, before, after, but));
}

// --- Entries -------------------------------------------------------------------------------------

// The counter of a versioned table.
static NullableDatum version_of(const Entry& entry) {
    const version::Versioning* versioning = version::versioning_of(entry.info);
    if (versioning == nullptr || versioning->column == InvalidAttrNumber ||
        !version::is_counter(versioning->kind))
        return {0, true};
    int position = versioning->column - 1;
    bool is_null = entry.row.nulls[position];
    return {Int64GetDatum(
                version::token_of_datum(versioning->kind, entry.row.values[position], is_null)),
            is_null};
}

namespace {

struct EntryValues {
    Datum values[kEntryColumns];
    bool nulls[kEntryColumns];

    void set(EntryColumn column, Datum value, bool is_null = false) {
        values[column] = value;
        nulls[column] = is_null;
    }
    void set(EntryColumn column, const char* text) {
        set(column, text == nullptr ? 0 : CStringGetTextDatum(text), text == nullptr);
    }
};

} // namespace

static Datum to_jsonb(const Entry& entry, const JsonMembers& members, const RowValues& row) {
    return members_to_jsonb(entry.info->columns, members, row, JsonFor::kStorage);
}

// A short entry if the newest one of the key has the old row (history/short_entry.h).
static bool set_short_row(EntryValues* values, const Entry& entry, const NewestEntry& newest) {
    uint64 hash = hash_of_row(to_jsonb(entry, history_of(entry.info)->row_members, entry.before));
    if (hash != newest.hash)
        return false;
    JsonMembers members = json_members(
        entry.info->columns, columns_with_other_bytes(entry, history_of(entry.info)->left_out));
    Datum before = to_jsonb(entry, members, entry.before);
    Datum after = to_jsonb(entry, members, entry.row);
    values->set(kEntryRow, after);
    values->set(kEntryBuildsOn, Int64GetDatum(newest.id));
    values->set(kEntryDistance, Int32GetDatum(newest.distance + 1));
    values->set(kEntryHash, Int64GetDatum(hash - hash_of_row(before) + hash_of_row(after)));
    return true;
}

static void set_whole_row(EntryValues* values, const Entry& entry, bool is_followed) {
    Datum row = to_jsonb(entry, history_of(entry.info)->row_members, entry.row);
    values->set(kEntryRow, row);
    if (!is_followed)
        return;
    values->set(kEntryDistance, Int32GetDatum(0));
    values->set(kEntryHash, Int64GetDatum(hash_of_row(row)));
}

static void set_row(EntryValues* values, const Entry& entry, Relation entries, TimestampTz now) {
    const History* history = history_of(entry.info);
    bool is_followed =
        history->whole_every > 1 && (entry.is_update || strcmp(entry.operation, kInsert) == 0);
    if (is_followed && entry.is_update) {
        NewestEntry newest = newest_entry(entries, values->values[kEntryKey], now);
        if (may_build_on(history, newest, now) && set_short_row(values, entry, newest))
            return;
    }
    set_whole_row(values, entry, is_followed);
}

static void set_changes(EntryValues* values, const Entry& entry) {
    TupleDesc columns = entry.info->columns;
    values->set(kEntryBefore, to_jsonb(entry, json_members(columns, entry.changed), entry.before));
    values->set(kEntryChanged, column_names(columns, entry.changed));
}

// The writer of the entry, else the holder of the marker, which needs no grant.
static void set_writer(EntryValues* values) {
    ownership::Writer writer = ownership::current_writer();
    const char* holder = writer.name == nullptr ? marker::current_holder() : nullptr;
    values->set(kEntryWriter, writer.name != nullptr ? writer.name : holder);
    values->set(kEntryWriterFrom, writer.name != nullptr ? writer.from
                                  : holder != nullptr    ? "holder"
                                                         : nullptr);
}

// Determined as the writing user.
static EntryValues values_of(const Entry& entry, Relation entries, TimestampTz now) {
    EntryValues values = {};
    memset(values.nulls, true, sizeof(values.nulls));
    NullableDatum version = version_of(entry);
    values.set(kEntryKey, history_key(entry.info, entry.row));
    values.set(kEntryVersion, version.value, version.isnull);
    values.set(kEntryChangedAt, TimestampTzGetDatum(now));
    set_writer(&values);
    values.set(kEntryChangedBy, GetUserNameFromId(GetUserId(), false));
    values.set(kEntryOperation, entry.operation);
    set_row(&values, entry, entries, now);
    if (entry.is_update)
        set_changes(&values, entry);
    values.set(kEntryTransaction,
               UInt64GetDatum(U64FromFullTransactionId(GetTopFullTransactionId())));
    values.set(kEntryCommand, Int64GetDatum(entry.command));
    NullableDatum context = current_context();
    values.set(kEntryContext, context.value, context.isnull);
    return values;
}

// Policies are for readers: as a foreign key the trigger writes past them.
static void capture(const Entry& entry) {
    const History* history = history_of(entry.info);
    TimestampTz now = GetCurrentTimestamp();
    Relation entries = open_entries(entry.rel, history, RowExclusiveLock);
    EntryValues values = values_of(entry, entries, now);
    write_entry(entries, values.values, values.nulls);
    if (has_retention(history))
        note_deadline(trim_time(history, now));
    if (history->notify != Notify::kOff)
        notify_readers(entry.info, values.values[kEntryKey]);
}

// --- TRUNCATE ------------------------------------------------------------------------------------

// Calls visit(slot) for each row that the latest snapshot shows: all rows, since no other
// transaction can write any more.
template <typename Visit>
static void each_row(Relation rel, Visit&& visit) {
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    TupleTableSlot* slot = table_slot_create(rel, nullptr);
    TableScanDesc scan = begin_table_scan(rel, snapshot);
    while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
        CHECK_FOR_INTERRUPTS();
        visit(slot);
    }
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    UnregisterSnapshot(snapshot);
}

static void count_truncation(Relation rel, const TableInfo* info, const Omission& omission) {
    CommandId command = GetCurrentCommandId(false);
    each_row(rel, [&](TupleTableSlot* slot) {
        bool should_free;
        count_row(info, kTruncate, command, ExecFetchSlotHeapTuple(slot, false, &should_free),
                  omission);
    });
}

static void truncate_leaf(Relation rel) {
    const TableInfo* info = table_info(rel);
    if (history_of(info) == nullptr)
        return;
    const History* history = usable_history(rel, info);
    Omission omission = omission_of(history);
    if (omission.active) {
        count_truncation(rel, info, omission);
        return;
    }
    CommandId command = GetCurrentCommandId(true);
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "truncated row", ALLOCSET_DEFAULT_SIZES);
    each_row(rel, [&](TupleTableSlot* slot) {
        in_context(memory, [&] {
            bool should_free;
            HeapTuple row = ExecFetchSlotHeapTuple(slot, false, &should_free);
            capture(
                {rel, info, kTruncate, values_of_row(info->columns, row), command, false, {}, {}});
            return 0;
        });
        MemoryContextReset(memory);
    });
    MemoryContextDelete(memory);
}

// TRUNCATE has locked the partitions.
static void capture_truncation(Relation root) {
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

} // namespace interlock::history

// The trigger that checks every write to a table with markers.
//
// It decides whether this writer may change the row, whether the write takes, renews or releases
// the marker, and which values the marker's columns then get. Plain SQL that sets the marker is
// treated as the functions are.

#include "marker/trigger.h"
#include "execution/partition_move.h"
#include "execution/probe.h"
#include "execution/row_change.h"
#include "marker/errors.h"
#include "marker/marker.h"
#include "server/error.h"
#include "statement/running.h"
#include "sweeper/deadline.h"
#include "table/last_word.h"
#include "table/row.h"

namespace interlock::marker {

namespace {

// One firing of the trigger.
struct Write {
    RowChange* change; // without an old row for INSERT, without a new one for DELETE
    const Marker* marker;
    MarkerState before;
    MarkerState after;
    TimestampTz clock;          // after any wait for the row
    const MarkerCall* call;     // null: no function writes
    const char* writer;         // the current holder, null for none
    const TriggerData* trigger; // null: a function writes without firing it
    bool by_function;           // a function writes, of this concept or of another
};

} // namespace

static Write read_write(RowChange* change, const char* writer);
static bool settle(const Write& write);

extern "C" {
PG_FUNCTION_INFO_V1(marker_trigger);

Datum marker_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "marker_trigger");
    if (fires_in_restore(trigger))
        return PointerGetDatum(trigger->tg_trigtuple);
    Relation rel = trigger->tg_relation;
    RowChange change = change_of(trigger, table_info(rel));
    change.function = firing_call(usable_marker(rel, change.info));
    HeapTuple row = trigger->tg_trigtuple;
    if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event)) {
        require_last_word(rel, change.info, TRIGGER_TYPE_INSERT);
        change.old_row = nullptr;
        change.new_row = trigger->tg_trigslot;
    } else if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event)) {
        require_last_word(rel, change.info, TRIGGER_TYPE_UPDATE);
        row = trigger->tg_newtuple;
    }
    Write write = read_write(&change, current_holder());
    write.trigger = trigger;
    write.by_function = is_fired_by_function();
    if (!write.by_function && change.old_row != nullptr)
        count(change.info, CountedKind::kMarker, Counter::kCalls);
    bool writes = settle(write);
    if (writes && TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
        refuse_unchecked_move(change);
    return PointerGetDatum(writes ? tuple_to_write(change, row) : nullptr);
}
}

static const MarkerCall* call_of(const RowChange& change) {
    return change.function != nullptr && change.function->run == run_marker_call
               ? static_cast<const MarkerCall*>(change.function)
               : nullptr;
}

static Write read_write(RowChange* change, const char* writer) {
    Write write = {};
    write.change = change;
    write.marker = usable_marker(change->rel, change->info);
    write.clock = GetCurrentTimestamp();
    write.call = call_of(*change);
    write.writer = writer;
    write.by_function = true;
    if (change->old_row != nullptr)
        write.before = marker_state(write.marker, values_in(change->old_row), write.clock);
    if (change->new_row != nullptr)
        write.after = marker_state(write.marker, values_in(change->new_row), write.clock);
    return write;
}

static bool is_action(const Write& write, MarkerAction action) {
    return write.call != nullptr && write.call->action == action;
}

// Whether the row is the one that a function names. A marker without a holder has the empty name
// there.
static bool is_row_of_call(const Write& write) {
    const char* holder = write.before.holder != nullptr ? write.before.holder : "";
    return write.call != nullptr && write.before.set && strcmp(holder, write.call->held_by) == 0;
}

// Whether the marker that a function wants to touch or release has expired while it waited.
static bool is_lost(const Write& write) {
    return !write.before.live && is_row_of_call(write) && !is_action(write, MarkerAction::kLock) &&
           !is_action(write, MarkerAction::kTakeOver);
}

// Whether a function takes the marker from its holder, who does not write.
static bool is_forced(const Write& write) {
    return (is_action(write, MarkerAction::kForce) || is_action(write, MarkerAction::kTakeOver)) &&
           is_row_of_call(write);
}

[[noreturn]] static void refuse_write(const Write& write) {
    const RowChange& change = *write.change;
    if (write.by_function)
        count(change.info, CountedKind::kMarker, Counter::kCalls);
    count(change.info, CountedKind::kMarker, Counter::kRefusals);
    raise_being_edited(change.rel, change.info, *write.marker, row_in(change.old_row),
                       write.before);
}

// Whether the statement releases the marker by its holder's name: WHERE ... AND holder = 'A'. Then
// the row that it has hit was held by A. What SET names is no evidence: ORMs write back whole rows.
static bool is_released_by_name(const Write& write) {
    return write.trigger != nullptr && write.change->new_row != nullptr && !write.after.set &&
           write.marker->compares_bytes &&
           comparison_of(write.trigger, write.marker->columns[kHolder].attnum) ==
               Comparison::kEqual;
}

// Where markers are enforced only the live holder writes. Otherwise every session may write, but
// none may take over a live marker.
static void check_authority(const Write& write) {
    if (!write.before.live || same_holder(write.writer, write.before.holder) || is_forced(write) ||
        is_released_by_name(write))
        return;
    bool takes_over = write.change->new_row != nullptr && write.after.set &&
                      !same_holder(write.after.holder, write.before.holder);
    if (write.marker->enforce || takes_over)
        refuse_write(write);
}

static bool column_changed(const Write& write, MarkerRole role) {
    const RowChange& change = *write.change;
    return change.old_row == nullptr ||
           !same_value(RelationGetDescr(change.rel), change.old_row, change.new_row,
                       write.marker->columns[role].attnum);
}

static bool marker_changed(const Write& write) {
    for (int role = 0; role < kMarkerRoles; role++)
        if (column_changed(write, static_cast<MarkerRole>(role)))
            return true;
    return false;
}

static void fill(const Write& write, MarkerRole role, Datum value, bool is_null = false) {
    put(write.change, write.marker->columns[role].attnum, {value, is_null});
}

// A marker that has expired under its holder, as it ends or is taken.
static void count_expiry(const Write& write) {
    if (write.before.set && !write.before.live)
        count(write.change->info, CountedKind::kMarker, Counter::kExpiries);
}

// A released marker clears its columns. Adopted columns that are NOT NULL get an empty value.
static void clear_column(const Write& write, MarkerRole role) {
    if (!write.marker->columns[role].not_null)
        fill(write, role, 0, true);
    else if (role == kHolder || role == kReason)
        fill(write, role, marker_text(write.marker->columns[role], ""));
    else if (role == kUntil)
        fill(write, role, TimestampTzGetDatum(DT_NOBEGIN));
}

static void release(const Write& write) {
    count_expiry(write);
    for (MarkerRole role : {kHolder, kTime, kUntil, kReason})
        clear_column(write, role);
}

static const char* require_holder(const Write& write) {
    if (write.after.holder != nullptr && write.after.holder[0] != '\0') {
        if (strlen(write.after.holder) > kHolderBytes)
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("column \"%s\" of table \"%s\" must not be longer than %d bytes",
                                   NameStr(write.marker->columns[kHolder].name),
                                   RelationGetRelationName(write.change->rel), kHolderBytes)));
        return write.after.holder;
    }
    if (write.writer == nullptr)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("a row of table \"%s\" cannot be marked without a holder",
                               RelationGetRelationName(write.change->rel)),
                        errhint("Set column \"%s\", or use interlock.lock_row.",
                                NameStr(write.marker->columns[kHolder].name))));
    return write.writer;
}

// A deadline that the writer sets is used. Otherwise the ttl counts, from the clock and not from
// the start of the transaction: when the marker is taken, and when it is renewed, by a new time in
// plain SQL too. A renewal never moves it nearer, unless its function may. The values in a
// statement of ours are replaced by this, unless another trigger has changed them.
static TimestampTz deadline(const Write& write, bool taken) {
    const MarkerCall* call = write.call;
    bool given = write.after.until != DT_NOBEGIN && column_changed(write, kUntil);
    if (given && (call == nullptr || write.after.until != call->until))
        return write.after.until;
    bool renewed = call != nullptr || column_changed(write, kTime);
    if (!taken && !renewed && write.after.until != DT_NOBEGIN)
        return write.before.until;
    int64 ttl = call != nullptr ? call->ttl : write.marker->ttl;
    TimestampTz until =
        DatumGetTimestampTz(marker_time(write.marker->columns[kUntil], write.clock + ttl));
    bool may_shorten = taken || (call != nullptr && call->may_shorten);
    return may_shorten ? until : Max(until, write.before.until);
}

static void count_hold(const Write& write, bool taken, const char* holder) {
    LineRef line = line_of(write.change->info, CountedKind::kMarker);
    if (is_action(write, MarkerAction::kTouch)) {
        count(line, Counter::kRenewals);
        if (write.before.until - write.clock < write.call->ttl / 2)
            count(line, Counter::kLateRenewals);
    } else if (taken && write.before.set && !write.before.live) {
        count_expiry(write);
        if (!same_holder(holder, write.before.holder))
            count(line, Counter::kTakeovers);
    }
}

// Takes or renews the marker.
static void hold(const Write& write, bool taken) {
    const char* holder = require_holder(write);
    count_hold(write, taken, holder);
    TimestampTz until = deadline(write, taken);
    if (!same_holder(holder, write.after.holder))
        fill(write, kHolder, marker_text(write.marker->columns[kHolder], holder));
    // The time tells the age of a marker to jobs that look for abandoned ones: it moves with it.
    bool dates =
        taken || is_action(write, MarkerAction::kLock) || is_action(write, MarkerAction::kTouch);
    if (write.after.since == DT_NOBEGIN || (dates && !column_changed(write, kTime)))
        fill(write, kTime, marker_time(write.marker->columns[kTime], write.clock));
    if (taken && is_action(write, MarkerAction::kLock) && !write.call->has_reason)
        clear_column(write, kReason);
    if (until != write.after.until)
        fill(write, kUntil, TimestampTzGetDatum(until));
    if (TIMESTAMP_NOT_FINITE(until))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("the deadline of a marker must be finite"),
                        errhint("Leave column \"%s\" to the server, or set a time.",
                                NameStr(write.marker->columns[kUntil].name))));
    note_deadline(until);
}

// Any other value belongs to the application: it is neither stored in the status of a marker nor
// overwritten by a function.
static void refuse_foreign_status(const Write& write) {
    const char* column = NameStr(write.marker->columns[kStatus].name);
    const char* table = RelationGetRelationName(write.change->rel);
    if (write.after.foreign)
        ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION),
                        errmsg("column \"%s\" of table \"%s\" can be 0 or 1 only", column, table),
                        errhint("0 is free, 1 is being edited. Keep another status in a column of "
                                "its own.")));
    if (write.before.foreign && write.call != nullptr)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("column \"%s\" of a row of table \"%s\" is neither 0 nor 1", column, table),
             errhint("If its value is a mistake, set it to 0. If it means something, the table's "
                     "owner disables the markers and enables them with another column.")));
}

static void settle_marker(const Write& write) {
    if (write.after.foreign || write.before.foreign)
        refuse_foreign_status(write);
    if (!write.after.set) {
        if (write.before.set)
            release(write);
        return;
    }
    // A write that leaves an expired marker alone does not bring it back to life.
    if (write.before.set && write.call == nullptr && !marker_changed(write))
        return;
    bool taken = !write.before.live || !same_holder(write.before.holder, write.after.holder);
    hold(write, taken);
}

// False to leave the row alone.
static bool settle(const Write& write) {
    if (is_lost(write))
        return false;
    check_authority(write);
    if (write.change->new_row != nullptr)
        settle_marker(write);
    return true;
}

bool check_marker(RowChange* change) {
    if (!trigger_fires(marker_of(change->info)->enabled))
        return true;
    const MarkerCall* call = call_of(*change);
    return settle(read_write(change, call != nullptr ? call->holder : current_holder()));
}

void refuse_if_marked(Relation rel, const TableInfo* info, TupleTableSlot* row) {
    RowChange change = {};
    change.rel = rel;
    change.info = info;
    change.old_row = row;
    check_authority(read_write(&change, current_holder()));
}

} // namespace interlock::marker

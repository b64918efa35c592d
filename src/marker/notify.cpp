// The trigger that sends a notification when a marker changes, on channel interlock_row_lock at
// commit: {table, event}; with the argument 'full' key and holder too, of a marker that is handed
// over the new one.
//
// Any role can listen, and the privileges of listeners are not known here. So the row is named only
// if the owner of the table allows it.
//
// The trigger exists only where notifications are enabled. It runs after the write, so that
// suppressed writes send none.

#include "server/notify.h"
#include "marker/marker.h"
#include "server/error.h"

namespace interlock::marker {

namespace {

// A row that moves to another partition is deleted here and inserted there. The deletion is
// remembered until the insertion, which follows it in the same command, and both are reported as
// one update.
struct Departure {
    Oid root; // InvalidOid: none
    TransactionId transaction;
    CommandId command;
    MarkerState marker; // its holder lives in TopTransactionContext
};

} // namespace

static Departure departure = {};

namespace {

// One firing of the trigger.
struct Change {
    const TableInfo* info;
    const Marker* marker;
    bool is_full;  // key and holder are sent
    HeapTuple row; // the newest there is
    MarkerState before;
    MarkerState after;
};

} // namespace

static bool is_full(const Trigger* trigger);
static void keep_departure(const Change& change);
static MarkerState arriving_marker(const Change& change);
static void tell(const Change& change);

extern "C" {
PG_FUNCTION_INFO_V1(marker_notify_trigger);

Datum marker_notify_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "marker_notify_trigger", TRIGGER_EVENT_AFTER);
    Change change = {};
    change.info = table_info(trigger->tg_relation);
    if (marker_of(change.info) == nullptr)
        return 0;
    change.marker = usable_marker(trigger->tg_relation, change.info);
    change.is_full = is_full(trigger->tg_trigger);
    change.row = trigger->tg_trigtuple;
    TupleDesc columns = RelationGetDescr(trigger->tg_relation);
    TimestampTz clock = GetCurrentTimestamp();
    MarkerState present = marker_state(change.marker, columns, change.row, clock);
    if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event)) {
        change.before = arriving_marker(change);
        change.after = present;
    } else {
        change.before = present;
    }
    if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event) &&
        HeapTupleHeaderIndicatesMovedPartitions(change.row->t_data)) {
        keep_departure(change);
        return 0;
    }
    if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event)) {
        change.row = trigger->tg_newtuple;
        change.after = marker_state(change.marker, columns, change.row, clock);
    }
    tell(change);
    return 0;
}
}

static bool is_full(const Trigger* trigger) {
    return argument_count(trigger) > 0 && strcmp(trigger->tgargs[0], "full") == 0;
}

static void keep_departure(const Change& change) {
    HeapTupleHeader row = change.row->t_data;
    departure = {change.marker->root, HeapTupleHeaderGetUpdateXid(row), HeapTupleHeaderGetCmax(row),
                 change.before};
    if (departure.marker.holder != nullptr)
        departure.marker.holder =
            MemoryContextStrdup(TopTransactionContext, departure.marker.holder);
}

// The marker of a row that is inserted, where it comes from; not set when it is new.
static MarkerState arriving_marker(const Change& change) {
    HeapTupleHeader row = change.row->t_data;
    if (departure.root != change.marker->root ||
        departure.transaction != HeapTupleHeaderGetXmin(row) ||
        departure.command != HeapTupleHeaderGetCmin(row))
        return {};
    departure.root = InvalidOid;
    return departure.marker;
}

static void notify(const Change& change, const char* event, const char* holder) {
    const char* table = qualified_name(change.marker->root);
    if (!change.is_full) {
        Async_Notify("interlock_row_lock", json_object({{"table", table}, {"event", event}}));
        return;
    }
    const char* key = key_to_text(change.info, key_of_tuple(change.info, change.row));
    char* payload = json_object(
        {{"table", table}, {"key", nullptr, key}, {"event", event}, {"holder", holder}});
    if (strlen(payload) > kLongestPayload)
        payload = json_object({{"table", table}, {"key"}, {"event", event}, {"holder", holder}});
    if (strlen(payload) > kLongestPayload)
        payload = json_object({{"table", table}, {"key"}, {"event", event}, {"holder"}});
    Async_Notify("interlock_row_lock", payload);
}

static bool is_by(const Change& change, MarkerAction action) {
    const MarkerCall* firing = firing_call(change.marker);
    return firing != nullptr && firing->action == action;
}

// What a release by a function has ended was live when the trigger let it pass.
static void tell_end(const Change& change) {
    const char* event =
        change.before.live || is_by(change, MarkerAction::kRelease) ? "unlocked" : "expired";
    if (is_by(change, MarkerAction::kForce) ||
        (change.before.live && is_by(change, MarkerAction::kTakeOver)))
        event = "forced";
    notify(change, event, change.before.holder);
}

// Except for take_over_row, others cannot take a live marker, so its holder has given it away: by
// hand_over_row or plain SQL. The function has decided before the clock of now.
static bool is_handed_over(const Change& change) {
    if (is_by(change, MarkerAction::kTakeOver))
        return false;
    return (change.before.live || is_by(change, MarkerAction::kHandOver)) &&
           change.before.holder != nullptr &&
           !same_holder(change.before.holder, change.after.holder);
}

static void tell(const Change& change) {
    const MarkerState& before = change.before;
    const MarkerState& after = change.after;
    if (!after.set) {
        if (before.set)
            tell_end(change);
        return;
    }
    bool expired = !before.live && before.since != after.since;
    if (before.set && same_holder(before.holder, after.holder) && !expired)
        return; // a renewal is no news
    if (is_handed_over(change)) {
        notify(change, "handed_over", after.holder);
        return;
    }
    if (before.set)
        tell_end(change);
    notify(change, "locked", after.holder);
}

} // namespace interlock::marker

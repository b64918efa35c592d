#include "marker/write.h"

#include "execution/write.h"
#include "version/update.h"

namespace interlock::marker {

static MarkerCall marker_call(const MarkedRow& row, MarkerAction action, int64 ttl) {
    MarkerCall result = {};
    result.run = run_marker_call;
    result.action = action;
    result.root = row.marker->root;
    result.holder = result.held_by = row.holder;
    result.ttl = ttl;
    result.until = DT_NOBEGIN;
    if (action != MarkerAction::kRelease && action != MarkerAction::kForce)
        result.until = DatumGetTimestampTz(
            marker_time(row.marker->columns[kUntil], GetCurrentTimestamp() + ttl));
    result.trigger_depth = trigger_depth();
    return result;
}

static KeyedRow keyed(const MarkedRow& row) {
    return {row.rel, row.info, &row.key, CountedKind::kMarker};
}

static const Expression* column(RowWrite* write, const Marker* marker, MarkerRole role) {
    return write->terms.column(marker->columns[role].attnum);
}

static const Expression* status(RowWrite* write, const Marker* marker, int value) {
    return write->terms.literal_number(marker->columns[kStatus].type, value);
}

static void set_status(RowWrite* write, const Marker* marker, int value) {
    write->set(marker->columns[kStatus].attnum, status(write, marker, value));
}

static void set_until(RowWrite* write, const Marker* marker, TimestampTz until) {
    AttrNumber attnum = marker->columns[kUntil].attnum;
    write->set(attnum, write->terms.stored_value(attnum, {TimestampTzGetDatum(until), false}));
}

static const Expression* literal_flag(RowWrite* write, bool value) {
    return write->terms.literal(BOOLOID, {BoolGetDatum(value), false});
}

// Requires that the row is marked and meets `condition`. The condition on the status is a CASE, so
// that the planner does not use the index over marked rows: it would read all of them, dead ones
// too, to find one.
static void require_set(RowWrite* write, const Marker* marker, const Expression* condition) {
    Expressions& terms = write->terms;
    write->require(
        terms.choose(terms.equal(column(write, marker, kStatus), status(write, marker, 1)),
                     condition, literal_flag(write, false)));
}

// An adopted marker may have no holder; it can be forced, by the empty name, which no holder can
// have (check_holder), and by a statement of its own.
static void require_holder(RowWrite* write, const Marker* marker, const char* name) {
    Expressions& terms = write->terms;
    const Expression* holder = column(write, marker, kHolder);
    if (name[0] == '\0') {
        write->variant += 1;
        holder = terms.coalesce(holder, terms.literal_text(""));
    }
    write->require(terms.equal(holder, terms.text(name)));
}

static void require_held(RowWrite* write, const MarkedRow& row) {
    require_set(write, row.marker,
                write->terms.greater(column(write, row.marker, kUntil), write->terms.clock()));
    require_holder(write, row.marker, row.holder);
}

static const Expression* is_over(RowWrite* write, const Marker* marker) {
    Expressions& terms = write->terms;
    const Expression* until = column(write, marker, kUntil);
    return terms.either(terms.is_null(until), terms.at_most(until, terms.clock()));
}

static void require_free_or_own(RowWrite* write, const MarkedRow& row, const Expression* holder) {
    const Marker* marker = row.marker;
    Expressions& terms = write->terms;
    const Expression* present = column(write, marker, kStatus);
    const Expression* is_free = terms.either(
        terms.is_null(present), terms.negation(terms.equal(present, status(write, marker, 1))));
    write->require(terms.either(terms.either(is_free, is_over(write, marker)),
                                terms.equal(column(write, marker, kHolder), holder)));
}

static void set_marker(RowWrite* write, const Marker* marker, const Expression* holder,
                       TimestampTz until, const char* reason) {
    const MarkerColumn* columns = marker->columns;
    set_status(write, marker, 1);
    write->set(columns[kHolder].attnum, holder);
    write->keep(columns[kTime].attnum);
    set_until(write, marker, until);
    write->set(columns[kReason].attnum,
               write->terms.coalesce(write->terms.text(reason), column(write, marker, kReason)));
}

static TimestampTz time_of(const MarkerColumn& column, NullableDatum value) {
    if (value.isnull)
        return DT_NOBEGIN;
    return column.type == TIMESTAMPOID ? time_in_zone(DatumGetTimestamp(value.value))
                                       : DatumGetTimestampTz(value.value);
}

// The trigger dates the marker, but a row that is written without locking it first may have been
// waited for after that.
static bool was_waited_for(const RowWrite& write, int64 ttl, TimestampTz until) {
    constexpr TimestampTz kAtOnce = 2 * USECS_PER_SEC; // more than a column's precision
    return may_write_unlocked(write) && GetCurrentTimestamp() + ttl > until + kAtOnce;
}

bool take_marker(const MarkedRow& row, int64 ttl, const char* reason, MarkerState* held,
                 OpenUpdates* open, bool* was_suppressed) {
    const MarkerColumn* columns = row.marker->columns;
    MarkerCall call = marker_call(row, MarkerAction::kLock, ttl);
    call.has_reason = reason != nullptr;
    RowWrite write(keyed(row), PlanKind("marker_lock"));
    write.function = &call;
    const Expression* holder = write.terms.text(row.holder);
    set_marker(&write, row.marker, holder, call.until, reason);
    require_free_or_own(&write, row, holder);
    write.returns(columns[kTime].attnum);
    write.returns(columns[kUntil].attnum);
    NullableDatum stored[2];
    auto take = [&] {
        if (!write_row(write, stored, open))
            return false;
        held->since = time_of(columns[kTime], stored[0]);
        held->until = time_of(columns[kUntil], stored[1]);
        return true;
    };
    held->holder = row.holder;
    bool taken = take();
    if (taken && was_waited_for(write, ttl, held->until))
        taken = take(); // for the deadline
    if (was_suppressed != nullptr)
        *was_suppressed = write.was_suppressed;
    return taken;
}

bool take_over_marker(const MarkedRow& row, const MarkerState& from, int64 ttl, const char* reason,
                      TimestampTz* until, bool* was_suppressed) {
    MarkerCall call = marker_call(row, MarkerAction::kTakeOver, ttl);
    call.held_by = from.holder;
    RowWrite write(keyed(row), PlanKind("marker_take_over"));
    write.function = &call;
    write.lock_first = true; // the former holder could not be put back
    set_marker(&write, row.marker, write.terms.text(row.holder), call.until, reason);
    write.variant = from.live ? 2 : 0;
    require_set(&write, row.marker,
                from.live ? literal_flag(&write, true) : is_over(&write, row.marker));
    require_holder(&write, row.marker, from.holder);
    write.returns(row.marker->columns[kUntil].attnum);
    NullableDatum stored;
    bool taken = write_row(write, &stored);
    *was_suppressed = write.was_suppressed;
    if (taken)
        *until = time_of(row.marker->columns[kUntil], stored);
    return taken;
}

bool release_marker(const MarkedRow& row, MarkerAction kind, bool* was_suppressed) {
    MarkerCall call = marker_call(row, kind, row.marker->ttl);
    RowWrite write(keyed(row), PlanKind("marker_unlock"));
    write.function = &call;
    set_status(&write, row.marker, 0);
    require_held(&write, row);
    bool released = write_row(write);
    if (was_suppressed != nullptr)
        *was_suppressed = write.was_suppressed;
    return released;
}

// The trigger counts the deadline.
bool touch_marker(const MarkedRow& row, int64 ttl, bool may_shorten, TimestampTz* until) {
    MarkerCall call = marker_call(row, MarkerAction::kTouch, ttl);
    call.may_shorten = may_shorten;
    RowWrite write(keyed(row), PlanKind("marker_touch"));
    write.function = &call;
    write.lock_first = true; // a new deadline could not be taken back
    set_until(&write, row.marker, call.until);
    require_held(&write, row);
    write.returns(row.marker->columns[kUntil].attnum);
    NullableDatum stored;
    if (!write_row(write, &stored))
        return false;
    *until = time_of(row.marker->columns[kUntil], stored);
    return true;
}

bool hand_over_marker(const MarkedRow& row, const char* to_holder, int64 ttl, TimestampTz* until) {
    const MarkerColumn* columns = row.marker->columns;
    MarkerCall call = marker_call(row, MarkerAction::kHandOver, ttl);
    RowWrite write(keyed(row), PlanKind("marker_hand_over"));
    write.function = &call;
    write.lock_first = true; // the other holder could not be taken back
    write.set(columns[kHolder].attnum, write.terms.text(to_holder));
    write.keep(columns[kTime].attnum);
    set_until(&write, row.marker, call.until);
    require_held(&write, row);
    write.returns(columns[kUntil].attnum);
    NullableDatum stored;
    if (!write_row(write, &stored))
        return false;
    *until = time_of(columns[kUntil], stored);
    return true;
}

bool delete_marked(const MarkedRow& row) {
    MarkerCall call = marker_call(row, MarkerAction::kRelease, row.marker->ttl);
    RowWrite write(keyed(row), PlanKind("marker_delete"), RowAction::kDelete);
    write.function = &call;
    require_held(&write, row);
    return write_row(write);
}

// The statements differ in SET, and so in their plans.
bool save_marked(const MarkedRow& row, const Changes& changes, const int64* expected, bool keep,
                 int64* version, bool* was_suppressed) {
    const version::Versioning* versioning = version::versioning_of(row.info);
    MarkerCall call =
        marker_call(row, keep ? MarkerAction::kTouch : MarkerAction::kRelease, row.marker->ttl);
    RowWrite write(keyed(row), expected != nullptr ? PlanKind("marker_save_versioned")
                                                   : PlanKind("marker_save"));
    write.function = &call;
    write.lock_first = keep; // a new deadline could not be taken back
    write.set(changes);
    if (changes.count == 0 && versioning != nullptr && !versioning->keeps_unchanged)
        write.keep(versioning->column); // a save moves it, also one without changes
    if (keep)
        set_until(&write, row.marker, call.until);
    else
        set_status(&write, row.marker, 0);
    require_held(&write, row);
    if (expected != nullptr)
        write.require(version::has_version(&write.terms, versioning, *expected));
    if (versioning != nullptr)
        write.returns(versioning->column);
    NullableDatum stored;
    version::VersionAfterWrite after(1);
    bool saved = write_row(write, &stored);
    *was_suppressed = write.was_suppressed;
    if (!saved)
        return false;
    if (versioning != nullptr)
        *version = after.version(
            write.row, version::token_of_datum(versioning->kind, stored.value, stored.isnull));
    return true;
}

} // namespace interlock::marker

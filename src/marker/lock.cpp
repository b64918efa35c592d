// The functions on the marker of one row: lock, touch, unlock and read. marker/save.cpp has save,
// and marker/force.cpp what others than the holder do.

#include "execution/stored_row.h"
#include "marker/call.h"
#include "server/arguments.h"
#include "server/error.h"
#include "server/result_row.h"

namespace interlock::marker {

constexpr int kAttempts = 10;

static Datum marker_row(FunctionCallInfo fcinfo, bool locked, const MarkerState& state);

extern "C" {
PG_FUNCTION_INFO_V1(lock_row);
PG_FUNCTION_INFO_V1(unlock_row);
PG_FUNCTION_INFO_V1(touch_row);
PG_FUNCTION_INFO_V1(row_lock_of);

Datum lock_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    MarkedRow call = open_call(arguments, true);
    int64 ttl = ttl_argument(arguments, 3, call.marker);
    const char* reason = arguments.string_or_null(4);
    for (int i = 0; i < kAttempts; i++) {
        MarkerState held = {};
        bool was_suppressed = false;
        if (take_marker(call, ttl, reason, &held, nullptr, &was_suppressed)) {
            count_call(call);
            close_table(call.rel);
            return marker_row(fcinfo, true, held);
        }
        Look found = look(call);
        if (!found.found)
            raise_no_such_row(call.rel, call.info, call.key);
        if (is_held_by_other(call, found)) {
            count_call(call, true);
            close_table(call.rel);
            return marker_row(fcinfo, false, found.state);
        }
        if (was_suppressed)
            break;
    }
    raise_suppressed(call.rel);
}

Datum unlock_row(PG_FUNCTION_ARGS) {
    MarkedRow call = open_call(Arguments(fcinfo), true);
    bool released = release_marker(call, MarkerAction::kRelease);
    count_call(call);
    close_table(call.rel);
    PG_RETURN_BOOL(released);
}

Datum touch_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    MarkedRow call = open_call(arguments, true);
    int64 ttl = ttl_argument(arguments, 3, call.marker);
    TimestampTz until = 0;
    bool held = touch_marker(call, ttl, !arguments.is_null(3), &until);
    count_call(call);
    close_table(call.rel);
    if (!held)
        PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(until);
}

Datum row_lock_of(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    MarkedRow call = open_call(arguments, false, AccessShareLock);
    Look found = look(call);
    if (!found.found)
        raise_no_such_row(call.rel, call.info, call.key);
    close_table(call.rel);
    bool free = !found.state.live;
    Datum values[5] = {BoolGetDatum(!free)};
    bool nulls[5] = {false, free, free || found.state.since == DT_NOBEGIN, free,
                     free || found.reason == nullptr};
    if (!free) {
        values[1] = CStringGetTextDatum(found.state.holder);
        values[2] = TimestampTzGetDatum(found.state.since);
        values[3] = TimestampTzGetDatum(found.state.until);
        if (found.reason != nullptr)
            values[4] = CStringGetTextDatum(found.reason);
    }
    return result_row(fcinfo, values, nulls);
}
}

// (locked, holder, locked_at, expires_at)
static Datum marker_row(FunctionCallInfo fcinfo, bool locked, const MarkerState& state) {
    Datum values[4] = {BoolGetDatum(locked), CStringGetTextDatum(state.holder),
                       TimestampTzGetDatum(state.since), TimestampTzGetDatum(state.until)};
    bool nulls[4] = {false, false, state.since == DT_NOBEGIN, state.until == DT_NOBEGIN};
    return result_row(fcinfo, values, nulls);
}

} // namespace interlock::marker

// The functions on the marker of one row: lock, touch, unlock, force and read; save is in
// marker/save.cpp.

#include "execution/stored_row.h"
#include "marker/call.h"
#include "server/arguments.h"
#include "server/error.h"
#include "server/result_row.h"
#include "table/own_table.h"
#include "table/restricted.h"
#include "table/subscription.h"

namespace interlock::marker {

constexpr int kAttempts = 10;

static void audit_force(const MarkedRow& call, const MarkerState& state, const char* reason);
static Datum marker_row(FunctionCallInfo fcinfo, bool locked, const MarkerState& state);

extern "C" {
PG_FUNCTION_INFO_V1(lock_row);
PG_FUNCTION_INFO_V1(unlock_row);
PG_FUNCTION_INFO_V1(touch_row);
PG_FUNCTION_INFO_V1(force_unlock_row);
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
    bool released = release_marker(call, Verb::kRelease);
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

Datum force_unlock_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    MarkedRow call = open_call(arguments, false);
    const char* reason = arguments.string(2, "reason");
    if (reason[0] == '\0')
        refuse_empty("reason", "It is stored in interlock.row_lock_audit.");
    for (int i = 0; i < kAttempts; i++) {
        Look found = look(call);
        if (!found.found)
            raise_no_such_row(call.rel, call.info, call.key);
        if (!found.state.live) {
            close_table(call.rel);
            PG_RETURN_NULL();
        }
        bool was_suppressed = false;
        call.holder = found.state.holder;
        if (release_marker(call, Verb::kForce, &was_suppressed)) {
            audit_force(call, found.state, reason);
            count_call(call);
            count(call.info, CountedKind::kMarker, Counter::kTakeovers);
            close_table(call.rel);
            PG_RETURN_TEXT_P(cstring_to_text(call.holder));
        }
        if (was_suppressed && is_held(call, look(call)))
            break;
    }
    raise_suppressed(call.rel);
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

static void audit_force(const MarkedRow& call, const MarkerState& state, const char* reason) {
    Oid types[6] = {TEXTOID, JSONBOID, TEXTOID, TEXTOID, TEXTOID, TIMESTAMPTZOID};
    Datum values[6] = {CStringGetTextDatum(qualified_name(call.rel)),
                       key_to_jsonb(call.info, *read_table_key(call.rel, call.info, call.key)),
                       CStringGetTextDatum(state.holder),
                       CStringGetTextDatum(reason),
                       CStringGetTextDatum(GetUserNameFromId(GetUserId(), false)),
                       TimestampTzGetDatum(state.until)};
    write_own_table(
        "row_lock_audit", TRIGGER_TYPE_INSERT,
        insert_of_line(own_table("row_lock_audit"),
                       "table_name, key, holder, reason, forced_by, would_expire_at", 6),
        6, types, values);
}

// (locked, holder, locked_at, expires_at)
static Datum marker_row(FunctionCallInfo fcinfo, bool locked, const MarkerState& state) {
    Datum values[4] = {BoolGetDatum(locked), CStringGetTextDatum(state.holder),
                       TimestampTzGetDatum(state.since), TimestampTzGetDatum(state.until)};
    bool nulls[4] = {false, false, state.since == DT_NOBEGIN, state.until == DT_NOBEGIN};
    return result_row(fcinfo, values, nulls);
}

} // namespace interlock::marker

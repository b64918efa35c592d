// What others than the holder do with a marker: force_unlock_row ends it, and take_over_row gives
// the row to another holder. Both are audited.

#include "execution/stored_row.h"
#include "marker/audit.h"
#include "marker/call.h"
#include "server/arguments.h"
#include "server/compat.h"
#include "server/result_row.h"
#include "table/own_table.h"

namespace interlock::marker {

constexpr int kAttempts = 10;

namespace {

// What take_over_row returns.
struct Answer {
    const char* outcome;
    const MarkerState* previous = nullptr; // null: no other holder had the row
    TimestampTz until = DT_NOBEGIN;
};

} // namespace

static bool may_take_live(const Marker* marker);
static Datum report(FunctionCallInfo fcinfo, const MarkedRow& call, const Answer& answer);

extern "C" {
PG_FUNCTION_INFO_V1(force_unlock_row);
PG_FUNCTION_INFO_V1(take_over_row);

// force_unlock_row(rel, key, reason) -> the holder
Datum force_unlock_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    MarkedRow call = open_call(arguments, false);
    const char* reason = reason_argument(arguments, 2);
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
        if (release_marker(call, MarkerAction::kForce, &was_suppressed)) {
            audit_loss(call, {"force_unlock_row", call.holder, nullptr, found.state.until, reason});
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

// take_over_row(rel, key, holder, reason, ttl) -> (outcome, previous_holder, since, expires_at)
//
// It takes the row from the holder that it found first. If that holder has lost the row to a third
// one by the time the row can be written, the third one keeps it.
Datum take_over_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    MarkedRow call = open_call(arguments, true);
    const char* reason = reason_argument(arguments, 3);
    int64 ttl = ttl_argument(arguments, 4, call.marker);
    Look first = look(call);
    Look found = first;
    bool was_suppressed = false;
    for (int i = 0; i < kAttempts; i++) {
        if (!found.found)
            return report(fcinfo, call, {"not_found"});
        const MarkerState& present = found.state;
        bool is_others =
            present.set && present.holder != nullptr && strcmp(present.holder, call.holder) != 0;
        bool is_first = first.state.live && same_holder(present.holder, first.state.holder);
        if (is_others && present.live && !(is_first && may_take_live(call.marker)))
            return report(fcinfo, call, {"refused", &present, present.until});
        if (was_suppressed)
            break;
        TimestampTz until = DT_NOBEGIN;
        MarkerState held = {};
        if (!is_others && take_marker(call, ttl, reason, &held, nullptr, &was_suppressed))
            return report(fcinfo, call, {"free", nullptr, held.until});
        if (is_others && take_over_marker(call, present, ttl, reason, &until, &was_suppressed)) {
            audit_loss(call, {"take_over_row", present.holder, call.holder, present.until, reason});
            if (present.live) // the trigger counts the others
                count(call.info, CountedKind::kMarker, Counter::kTakeovers);
            return report(fcinfo, call, {"taken", &present, until});
        }
        found = look(call);
    }
    raise_suppressed(call.rel);
}
}

static bool may_take_live(const Marker* marker) {
    if (marker->take_over != TakeOver::kOperators)
        return marker->take_over == TakeOver::kAllow;
    Oid function = own_function_oid("force_unlock_row", {REGCLASSOID, ANYOID, TEXTOID});
    return OidIsValid(function) && check_function_privilege(function, GetUserId()) == ACLCHECK_OK;
}

static Datum report(FunctionCallInfo fcinfo, const MarkedRow& call, const Answer& answer) {
    count_call(call, strcmp(answer.outcome, "refused") == 0);
    close_table(call.rel);
    const MarkerState* previous = answer.previous;
    bool nulls[4] = {false, previous == nullptr,
                     previous == nullptr || previous->since == DT_NOBEGIN,
                     answer.until == DT_NOBEGIN};
    Datum values[4] = {CStringGetTextDatum(answer.outcome)};
    if (!nulls[1])
        values[1] = CStringGetTextDatum(previous->holder);
    if (!nulls[2])
        values[2] = TimestampTzGetDatum(previous->since);
    if (!nulls[3])
        values[3] = TimestampTzGetDatum(answer.until);
    return result_row(fcinfo, values, nulls);
}

} // namespace interlock::marker

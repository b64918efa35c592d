// What a holder does with a marker other than saving: hand_over_row gives it to another holder, and
// delete_row ends it with the row.

#include "marker/audit.h"
#include "marker/call.h"
#include "marker/errors.h"
#include "server/arguments.h"

namespace interlock::marker {

extern "C" {
PG_FUNCTION_INFO_V1(hand_over_row);
PG_FUNCTION_INFO_V1(delete_row);

// hand_over_row(rel, key, holder, to_holder, ttl) -> the new deadline
Datum hand_over_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    MarkedRow call = open_call(arguments, true);
    const char* to_holder = check_holder(arguments.string(3, "to_holder"), "to_holder");
    int64 ttl = ttl_argument(arguments, 4, call.marker);
    TimestampTz until = 0;
    if (!hand_over_marker(call, to_holder, ttl, &until))
        raise_unwritten(call);
    if (!same_holder(to_holder, call.holder))
        audit_loss(call, {"hand_over_row", call.holder, to_holder});
    count_call(call);
    close_table(call.rel);
    PG_RETURN_TIMESTAMPTZ(until);
}

// delete_row(rel, key, holder)
Datum delete_row(PG_FUNCTION_ARGS) {
    MarkedRow call = open_call(Arguments(fcinfo), true);
    if (!delete_marked(call))
        raise_unwritten(call);
    count_call(call);
    close_table(call.rel);
    PG_RETURN_VOID();
}
}

} // namespace interlock::marker

#include "marker/call.h"

#include "execution/stored_row.h"
#include "server/arguments.h"

namespace interlock {

MarkedRow open_call(const Arguments& arguments, bool names_holder, LOCKMODE mode) {
    MarkedRow call = {};
    call.rel = open_table(arguments.relation(0), mode);
    call.info = table_info(call.rel);
    call.marker = require_marker(call.rel, call.info);
    call.key = key_argument(arguments, 1, call.rel, call.info);
    if (names_holder)
        call.holder = check_holder(arguments.string(2, "holder"));
    return call;
}

Look look(const MarkedRow& call) {
    Look result = {};
    StoredRow row = read_row(call.rel, call.info, call.key, call.marker->attnums);
    result.found = row.found;
    if (!row.found)
        return result;
    // Spread over a row of the table's shape, so that the marker's attribute numbers fit.
    HeapTuple tuple = stored_row_as_tuple(row, call.info);
    result.state = marker_state(call.marker, call.info->columns, tuple, GetCurrentTimestamp());
    if (result.state.live && result.state.holder == nullptr)
        result.state.holder = "";
    bool is_null;
    Datum reason =
        heap_getattr(tuple, call.marker->columns[kReason].attnum, call.info->columns, &is_null);
    if (!is_null)
        result.reason = TextDatumGetCString(reason);
    return result;
}

} // namespace interlock

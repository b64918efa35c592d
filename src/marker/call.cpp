#include "marker/call.h"

#include "execution/stored_row.h"
#include "server/arguments.h"

namespace interlock::marker {

static MarkedRow open_marked(const Arguments& arguments, LOCKMODE mode) {
    MarkedRow call = {};
    call.rel = open_table(arguments.relation(0), mode);
    call.info = table_info(call.rel);
    call.marker = require_marker(call.rel, call.info);
    return call;
}

MarkedRow open_call(const Arguments& arguments, bool names_holder, LOCKMODE mode) {
    MarkedRow call = open_marked(arguments, mode);
    call.key = key_argument(arguments, 1, call.rel, call.info);
    if (names_holder)
        call.holder = check_holder(arguments.string(2, "holder"));
    return call;
}

MarkedRow open_rows(const Arguments& arguments, const char* holder) {
    MarkedRow call = open_marked(arguments, RowExclusiveLock);
    call.holder = holder;
    return call;
}

void count_call(const MarkedRow& call, bool is_conflict) {
    LineRef line = line_of(call.info, CountedKind::kMarker);
    count(line, Counter::kCalls);
    if (is_conflict)
        count(line, Counter::kConflicts);
}

int64 ttl_argument(const Arguments& arguments, int n, const Marker* marker) {
    return arguments.is_null(n)
               ? marker->ttl
               : duration_argument(arguments.interval(n, "ttl"), "ttl",
                                   "It is how long the row stays locked, such as "
                                   "'5 min'; lock_timeout limits how long it waits for a writer.");
}

Look look(const MarkedRow& call, RowLock lock) {
    Look result = {};
    StoredRow row =
        read_row(call.rel, call.info, call.key,
                 with_table_key(call.rel, call.info, call.key, call.marker->attnums), lock);
    result.found = row.found;
    if (!row.found)
        return result;
    result.key = table_key(call.info, call.key, row);
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

bool is_held_by_other(const MarkedRow& call, const Look& found) {
    return found.state.live && strcmp(found.state.holder, call.holder) != 0;
}

bool is_held(const MarkedRow& call, const Look& found) {
    return found.state.live && strcmp(found.state.holder, call.holder) == 0;
}

} // namespace interlock::marker

// What the functions on marked rows share: reading their arguments, and reading a marker.
#pragma once

#include "execution/row_lock.h"
#include "marker/write.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::marker {

// Reads the arguments (rel, key), and (holder) if the verb names one. Raises what open_table(),
// require_marker() and key_argument() do, and 22023 for a holder's name.
MarkedRow open_call(const Arguments& arguments, bool names_holder,
                    LOCKMODE mode = RowExclusiveLock);

// As above for a verb on several rows, without the key; its caller has read the holder.
MarkedRow open_rows(const Arguments& arguments, const char* holder);

// Counts a call of a verb on one row, and whether another holder had it (contention/count.h).
void count_call(const MarkedRow& call, bool is_conflict = false);

// Argument n, named "ttl": in microseconds, null for the table's; 22023 unless it is above zero.
int64 ttl_argument(const Arguments& arguments, int n, const Marker* marker);

// The marker as it is stored, or in the newest version of the row once that is locked; one that is
// live has a holder, the empty name if none is stored.
struct Look {
    bool found;
    MarkerState state;
    const char* reason;
    const Key* key; // what to call the row by (table_key())
};
Look look(const MarkedRow& call, RowLock lock = {});

// Whether another holder has it.
bool is_held_by_other(const MarkedRow& call, const Look& found);

// Whether call.holder has it.
bool is_held(const MarkedRow& call, const Look& found);

// IL005, for a verb that acts under the marker of call.holder: the row is there, and another
// holder or none has the marker.
[[noreturn]] void raise_not_held(const MarkedRow& call, const Look& found);

// For a verb whose write found no row that call.holder has: P0002, IL005, or what
// raise_suppressed() raises.
[[noreturn]] void raise_unwritten(const MarkedRow& call);

} // namespace interlock::marker

// What the functions on marked rows share: reading their arguments and reading a marker.
#pragma once

#include "execution/row_lock.h"
#include "marker/write.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::marker {

// Reads the arguments (rel, key), and also (holder) if the function has it. Raises the errors of
// open_table(), require_marker() and key_argument(), and 22023 for an invalid name of a holder.
MarkedRow open_call(const Arguments& arguments, bool names_holder,
                    LOCKMODE mode = RowExclusiveLock);

// As above for a function on several rows, without a key. Its caller has read the holder.
MarkedRow open_rows(const Arguments& arguments, const char* holder);

// Counts a call of a function on one row, and whether another holder had the row
// (contention/count.h).
void count_call(const MarkedRow& call, bool is_conflict = false);

// Argument n, named "ttl", in microseconds. Null means the table's ttl. Raises 22023 unless it is
// above zero.
int64 ttl_argument(const Arguments& arguments, int n, const Marker* marker);

// The marker as it is stored, or as it is in the newest version of the row after locking it. A live
// marker has a holder, which is the empty name if none is stored.
struct Look {
    bool found;
    MarkerState state;
    const char* reason;
    const Key* key; // the key by which to name the row (table_key())
};
Look look(const MarkedRow& call, RowLock lock = {});

// Whether another holder has the marker.
bool is_held_by_other(const MarkedRow& call, const Look& found);

// Whether call.holder has the marker.
bool is_held(const MarkedRow& call, const Look& found);

} // namespace interlock::marker

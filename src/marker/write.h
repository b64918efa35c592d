// The writes of the functions on one row's marker. Each has a condition.
#pragma once

#include "marker/marker.h"
#include "table/row.h"

namespace interlock::inline execution {
struct OpenUpdates;
} // namespace interlock::inline execution

namespace interlock::marker {

// The row, and the holder for whom the function is called.
struct MarkedRow {
    Relation rel;
    const TableInfo* info;
    const Marker* marker;
    Key key;
    const char* holder; // null: the function has no holder
};

// Acquires or renews the marker if it is free or belongs to the holder. *held gets the stored
// values. A renewal never shortens the marker. A null reason keeps the current reason. Consecutive
// calls for one table share `open`. If nothing was written, *was_suppressed says whether a trigger
// is known to be the reason (RowWrite::was_suppressed).
bool take_marker(const MarkedRow& row, int64 ttl, const char* reason, MarkerState* held,
                 OpenUpdates* open = nullptr, bool* was_suppressed = nullptr);

// Gives the marker to row.holder if it still has the holder of `from`, and if it has expired or
// from.live is set.
bool take_over_marker(const MarkedRow& row, const MarkerState& from, int64 ttl, const char* reason,
                      TimestampTz* until, bool* was_suppressed);

// Releases the marker if row.holder holds it.
bool release_marker(const MarkedRow& row, MarkerAction kind, bool* was_suppressed = nullptr);

// Moves the deadline to `ttl` from now if row.holder holds the marker. It moves it to an earlier
// time only if may_shorten is true.
bool touch_marker(const MarkedRow& row, int64 ttl, bool may_shorten, TimestampTz* until);

// Gives the marker to another holder, for `ttl` from now, if row.holder holds it.
bool hand_over_marker(const MarkedRow& row, const char* to_holder, int64 ttl, TimestampTz* until);

// Deletes the row if row.holder holds it.
bool delete_marked(const MarkedRow& row);

// Writes the changes if row.holder holds the marker, and if `expected` is null or is the row's
// version. It releases the marker, or with `keep` it moves the deadline as touch_marker() does and
// never to an earlier time. *version gets the new version if the table has versions.
bool save_marked(const MarkedRow& row, const Changes& changes, const int64* expected, bool keep,
                 int64* version, bool* was_suppressed);

} // namespace interlock::marker

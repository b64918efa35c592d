// The writes of the functions on one row's marker, each with its condition.
#pragma once

#include "marker/marker.h"
#include "table/row.h"

namespace interlock::inline execution {
struct OpenUpdates;
} // namespace interlock::inline execution

namespace interlock::marker {

// The row, and the holder that calls.
struct MarkedRow {
    Relation rel;
    const TableInfo* info;
    const Marker* marker;
    Key key;
    const char* holder; // null for verbs that name none
};

// Takes or renews the marker if it is free or belongs to the holder; *held gets the stored values.
// A renewal never shortens it. A null reason leaves the present one. Consecutive calls for one
// table share `open`. Where nothing was written, *was_suppressed says whether it is known that a
// trigger is the reason (RowWrite::was_suppressed).
bool take_marker(const MarkedRow& row, int64 ttl, const char* reason, MarkerState* held,
                 OpenUpdates* open = nullptr, bool* was_suppressed = nullptr);

// Takes the marker off while row.holder holds it.
bool release_marker(const MarkedRow& row, Verb kind, bool* was_suppressed = nullptr);

// Moves the deadline to `ttl` from now while row.holder holds the marker, nearer only if it may.
bool touch_marker(const MarkedRow& row, int64 ttl, bool may_shorten, TimestampTz* until);

// Gives the marker to another holder, for `ttl` from now, while row.holder holds it.
bool hand_over_marker(const MarkedRow& row, const char* to_holder, int64 ttl, TimestampTz* until);

// Deletes the row while row.holder holds it.
bool delete_marked(const MarkedRow& row);

// Writes the changes and releases the marker while row.holder holds it, if `expected` is null or
// the row's version. *version gets the new version, if the table has versions.
bool save_marked(const MarkedRow& row, const Changes& changes, const int64* expected,
                 int64* version);

} // namespace interlock::marker

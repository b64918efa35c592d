// The errors of markers: IL004 for a writer who is not the holder, IL005 for a holder who has lost
// the marker.
#pragma once

#include "marker/call.h"

namespace interlock::marker {

// Raises IL004 for a write to a row that another holder has. It shows the columns that the current
// user could SELECT. `row` is the stored row, and `state` its marker.
[[noreturn]] void raise_being_edited(Relation rel, const TableInfo* info, const Marker& marker,
                                     HeapTuple row, const MarkerState& state);

// Raises IL005, for a function that acts under the marker of call.holder. The row exists, and
// another holder or no holder has the marker.
[[noreturn]] void raise_not_held(const MarkedRow& call, const Look& found);

// For a function whose write found no row that call.holder has. Raises P0002, IL005, or the errors
// of raise_suppressed().
[[noreturn]] void raise_unwritten(const MarkedRow& call);

} // namespace interlock::marker

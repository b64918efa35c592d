// The checks of the marker trigger, for rows that are written without firing it.
#pragma once

#include "execution/row_change.h"

namespace interlock::marker {

// False when the verb has lost the marker meanwhile; raises IL004.
bool check_marker(RowChange* change);

// Raises IL004 when the marker of a row keeps the current holder from writing it, as the row stands
// now: for a change of what belongs to it.
void refuse_if_marked(Relation rel, const TableInfo* info, TupleTableSlot* row);

} // namespace interlock::marker

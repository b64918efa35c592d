// The checks of the marker trigger, for rows that are written without firing it.
#pragma once

#include "execution/row_change.h"

namespace interlock::marker {

// Returns false if the function has lost the marker meanwhile. Raises IL004.
bool check_marker(RowChange* change);

// Raises IL004 if the current marker of a row does not allow the current holder to write the row.
// Called for a parent row when its children change.
void refuse_if_marked(Relation rel, const TableInfo* info, TupleTableSlot* row);

} // namespace interlock::marker

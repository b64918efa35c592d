// The check of the marker trigger, for a row that is written without firing it.
#pragma once

#include "execution/row_change.h"

namespace interlock {

// False when the verb has lost the marker meanwhile; raises IL004.
bool check_marker(RowChange* change);

} // namespace interlock

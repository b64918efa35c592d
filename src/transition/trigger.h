// The checks of the transition triggers, for a row that is written without firing them.
#pragma once

#include "execution/row_change.h"

namespace interlock::transition {

// Returns true, or raises IL002.
bool check_transitions(RowChange* change);

} // namespace interlock::transition

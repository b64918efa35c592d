// The check of the version trigger, for a row that is written without firing it.
#pragma once

#include "execution/row_change.h"

namespace interlock::version {

// Always true: the row is written.
bool check_version(RowChange* change);

} // namespace interlock::version

// Updates that leave the version alone.
#pragma once

#include "execution/row_change.h"
#include "version/version.h"

namespace interlock {

// An update that changes only ignored columns does not move the version. For an update without any
// change the columns that it names decide, so that SET a = a still moves it.
bool is_housekeeping(const RowChange& change, const Versioning* versioning);

} // namespace interlock

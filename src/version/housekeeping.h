// Updates that leave the version alone.
#pragma once

#include "execution/row_change.h"
#include "version/version.h"

namespace interlock::version {

// An update that changes only ignored columns does not move the version. For an update without any
// change the columns that it names decide, so that SET a = a still moves it. What a verb changes of
// a marker is no change: a save moves the version, whatever its caller has changed.
bool is_housekeeping(const RowChange& change, const Versioning* versioning, bool is_verb);

} // namespace interlock::version

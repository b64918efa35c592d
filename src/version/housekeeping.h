// Updates that do not move the version.
#pragma once

#include "execution/row_change.h"
#include "version/version.h"

namespace interlock::version {

// An update that changes only ignored columns does not move the version. If an update changes
// nothing, the columns that it names decide, so SET a = a still moves the version, unless
// Versioning::keeps_unchanged is set. Values are compared by their bytes: 1.0 is not 1.00. When a
// function changes a marker, that counts as no change. So a save moves the version, whatever else
// its caller has changed.
bool is_housekeeping(const RowChange& change, const Versioning* versioning, bool by_function);

} // namespace interlock::version

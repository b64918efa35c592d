// What the caller may see of counters.
#pragma once

#include "escrow/escrow.h"

namespace interlock::escrow {

// Whether the caller may read the key and the column with that label, and row security hides no
// rows. Checked once in a statement for each column.
bool may_read_counters(FunctionCallInfo call, Oid rel, const NameData& label);

} // namespace interlock::escrow

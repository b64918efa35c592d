// The column of a counter's row, without its parts.
#pragma once

#include "escrow/change.h"

namespace interlock::escrow {

// Under the active snapshot, as the caller. False: there is no such row.
bool read_stored_value(const EscrowCounter& counter, int64* value);

} // namespace interlock::escrow

// The order in which calls go through several counters.
#pragma once

#include "escrow/change.h"

namespace interlock::escrow {

// Below zero if the left counter comes first. All calls use this order, so that no two of them wait
// for each other.
int compare_counters(const EscrowCounter& left, const EscrowCounter& right);

} // namespace interlock::escrow

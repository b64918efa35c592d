// Returns the amounts of expired reservations, each exactly once, because a reservation ends with
// its row.
#pragma once

#include "escrow/change.h"
#include "sweeper/task.h"

namespace interlock::escrow {

// For all counters of the column, or for the counter of one key, in the caller's transaction. Waits
// for other transactions that are ending one of these reservations.
void return_expired_of(Relation rel, const EscrowColumn& column, const text* key);

// For all counters, in a run of the sweeper.
void sweep_reservations(SweepRun* run);

} // namespace interlock::escrow

// Giving back what expired reservations have taken: exactly once, as each ends with its row.
#pragma once

#include "escrow/change.h"
#include "sweeper/task.h"

namespace interlock::escrow {

// In the caller's transaction: of all counters of the column, or of that of one key. Waits for
// others that end them.
void return_expired_of(Relation rel, const EscrowColumn& column, const text* key);

// Of all counters, in a run of the sweeper.
void sweep_reservations(SweepRun* run);

} // namespace interlock::escrow

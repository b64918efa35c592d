// Folding: adding the committed parts of a counter to its row.
#pragma once

#include "escrow/escrow.h"
#include "sweeper/task.h"

namespace interlock::escrow {

// Folds the counters of the column that have parts. Raises 55000 if some parts remain. The caller
// holds ACCESS EXCLUSIVE on the table. `skips_gone_rows`: leaves out counters whose row is gone.
// That happens only if the triggers of the counters were missing.
void fold_column(Relation rel, const EscrowColumn& column, bool skips_gone_rows);

extern const SweepTask kEscrowSweep;

} // namespace interlock::escrow

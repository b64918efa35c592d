// Folding: adding the committed parts of a counter to its row.
#pragma once

#include "escrow/escrow.h"
#include "sweeper/task.h"

namespace interlock::escrow {

// Folds the counters of the column that have parts; 55000 when one of them keeps some. Under ACCESS
// EXCLUSIVE. Rows may be gone where the triggers were.
void fold_column(Relation rel, const EscrowColumn& column, bool skips_gone_rows);

extern const SweepTask kEscrowSweep;

} // namespace interlock::escrow

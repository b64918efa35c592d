// Folding: adding the committed parts of a counter to its row.
#pragma once

#include "escrow/escrow.h"
#include "sweeper/task.h"

namespace interlock {

// Folds the counters of the table's column that have parts; 55000 when one of them keeps some.
// Under ACCESS EXCLUSIVE.
void fold_column(Relation rel, const NameData* column);

extern const SweepTask kEscrowSweep;

} // namespace interlock

// In which order a run of the sweeper goes through tables.
#pragma once

#include "sweeper/task.h"

namespace interlock {

// The tables again, in the current context. Their owners take turns, in an order that each run
// draws, so that one whose tables take all the time, however many there are, does not starve the
// others. The owner of the table in which the last run stopped (else InvalidOid) comes last, and
// its tables after that one first; those of others from any on. Outside a transaction.
List* in_turns(SweepRun* run, List* tables, Oid last);

} // namespace interlock

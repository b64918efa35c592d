// What adjust, try_adjust and reserve have in common: a delta that is tested.
#pragma once

#include "escrow/change.h"
#include "server/deadline.h"

namespace interlock::escrow {

struct Adjustment {
    EscrowCounter* counter;
    Deadline deadline;
    bool in_row;       // shared memory must not be used
    bool has_policies; // row security applies to the caller
    CounterState after;
    bool knows_after; // false: the gate is closed
    bool timed_out;   // `wait` has passed during a wait
};

// A change of the counter by the caller, who must have the rights for it.
Adjustment adjustment_of(const EscrowCounter& counter, const Deadline& deadline);

// Reads the arguments rel, key and column_name, and argument `wait`, opens the table and checks
// what the caller may do. `function` is the name of the function for errors of read-only
// transactions.
Adjustment read_adjustment(const Arguments& arguments, const char* function, int wait);

// Enters the delta (E1), in memory or in the row. Returns the verdict when that is done, or when
// `wait` has passed. It is never kNoEntry.
Verdict adjust_in_time(Adjustment* call, const Delta& delta);

} // namespace interlock::escrow

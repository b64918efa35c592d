// What adjust, try_adjust and reserve have in common: a delta that is tested.
#pragma once

#include "escrow/change.h"
#include "server/deadline.h"

namespace interlock::escrow {

struct Adjustment {
    EscrowCounter* counter;
    Deadline deadline;
    bool in_row;       // memory may not be used
    bool has_policies; // row security holds for the caller
    CounterState after;
    bool knows_after; // false while the gate is closed
    bool timed_out;   // `wait` has passed in a wait
};

// Reads the arguments rel, key and column_name, and argument `wait`, opens the table and checks
// what the caller may do. `verb` is for the errors of read-only transactions.
Adjustment read_adjustment(const Arguments& arguments, const char* verb, int wait);

// Enters the delta (E1), in memory or in the row, with the verdict when that was done or `wait` has
// passed: never kNoEntry.
Verdict adjust_in_time(Adjustment* call, const Delta& delta);

} // namespace interlock::escrow

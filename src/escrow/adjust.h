// What adjust, try_adjust and reserve have in common: a part with a test.
#pragma once

#include "escrow/change.h"
#include "server/deadline.h"

namespace interlock::escrow {

enum class AdjustOutcome : uint8 { kAdjusted, kInsufficient, kPending, kNotFound };

struct Adjustment {
    EscrowCounter* counter;
    Part part;
    Deadline deadline;
    bool in_row;       // shared memory must not be used
    bool has_policies; // row security applies to the caller
    CounterState after;
    bool knows_after; // false: the gate is closed
    bool timed_out;   // `wait` has passed during a wait
};

// Reads the arguments rel, key and column_name, and argument `wait`. Opens the table and checks
// what the caller may do. `verb` is the name of the function for errors of read-only transactions.
// The part is empty.
Adjustment read_adjustment(const Arguments& arguments, const char* verb, int wait);

// Adds the part (E1), in memory or in the row. Returns the outcome when that is done, or when
// `wait` has passed.
AdjustOutcome adjust_in_time(Adjustment* call);

} // namespace interlock::escrow

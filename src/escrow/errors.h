// The error of counters: IL012.
#pragma once

#include "escrow/change.h"

namespace interlock::escrow {

// The change exceeds a limit, or waits for other transactions (Verdict::kPending). Pass null
// for `state` if the caller may not see the key and the remaining amount.
[[noreturn]] void raise_not_enough(const EscrowCounter& counter, int64 delta, Verdict verdict,
                                   const CounterState* state);

// The same without the amount and its direction, for a caller who must not know them.
[[noreturn]] void raise_does_not_fit(const EscrowCounter& counter, Verdict verdict);

// For a plain write of a value that is outside of the limits.
[[noreturn]] void raise_out_of_limits(Relation rel, const EscrowColumn& column);

} // namespace interlock::escrow

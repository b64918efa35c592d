// What a change would get.

#include "escrow/memory.h"

namespace interlock::escrow {

Verdict test_delta(Range range, int64 delta, EscrowLimits limits) {
    int64 worst, best;
    if (delta < 0) {
        if (pg_add_s64_overflow(range.inf, delta, &worst) ||
            pg_add_s64_overflow(range.sup, delta, &best))
            return Verdict::kInsufficient;
        return worst >= limits.least  ? Verdict::kGranted
               : best >= limits.least ? Verdict::kPending
                                      : Verdict::kInsufficient;
    }
    if (pg_add_s64_overflow(range.sup, delta, &worst) ||
        pg_add_s64_overflow(range.inf, delta, &best))
        return Verdict::kInsufficient;
    return worst <= limits.most  ? Verdict::kGranted
           : best <= limits.most ? Verdict::kPending
                                 : Verdict::kInsufficient;
}

// Of the two effects on each number a part has one at most, so the best end of all is the sum.
bool can_fit(const CounterState& state, int64 delta, EscrowLimits limits) {
    const Effects& open = state.open;
    AmountSum best = {};
    if (delta < 0) {
        for (int64 amount : {state.range.inf, open.inf_on_commit, open.inf_on_abort, delta})
            best.add(amount);
        return best.wraps > 0 || (best.wraps == 0 && best.low >= limits.least);
    }
    for (int64 amount : {state.range.sup, -open.sup_on_commit, -open.sup_on_abort, delta})
        best.add(amount);
    return best.is_at_most(limits.most);
}

} // namespace interlock::escrow

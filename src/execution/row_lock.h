// How a read locks its row.
#pragma once

#include "table/plan.h"

namespace interlock::inline execution {

// The locking clause of SELECT, and what it does if another transaction has locked the row.
enum class RowStrength : uint8 { kNone, kKeyShare, kShare, kNoKeyUpdate, kUpdate };
enum class RowWait : uint8 { kWait, kNowait, kSkipLocked };
struct RowLock {
    RowStrength strength = RowStrength::kNone;
    RowWait wait = RowWait::kWait;
    CountedKind counted_as = CountedKind::kNone; // the kind under which a wait is counted
};

// Raises 25000 in parallel mode if the statement is about to lock rows. The server does that for
// UPDATE. For SELECT ... FOR UPDATE it relies on the planner, which a function that is wrongly
// declared parallel safe bypasses.
void prevent_in_parallel_mode(RowLock lock);

// Adds the locking clause, if any, to a SELECT. The number distinguishes cached plans with
// different locks.
void add_row_lock(Statement* statement, RowLock lock);
AttrNumber row_lock_number(RowLock lock);

} // namespace interlock::inline execution

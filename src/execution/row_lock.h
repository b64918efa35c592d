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

// Locks the row version in the slot by lock(place, wait). If waits are counted, the lock is first
// tried without waiting, which shows whether the call has to wait.
template <typename Lock>
TM_Result lock_counted(LineRef line, LockWaitPolicy wait, TupleTableSlot* slot, Lock&& lock) {
    ItemPointerData place = slot->tts_tid;
    ExecClearTuple(slot);
    if (line.line == nullptr || wait != LockWaitBlock)
        return lock(place, wait);
    TM_Result result = lock(place, LockWaitSkip);
    if (result != TM_WouldBlock)
        return result;
    ExecClearTuple(slot);
    return count_waiting(line, [&] { return lock(place, LockWaitBlock); });
}

// Adds the locking clause, if any, to a SELECT. The number distinguishes cached plans with
// different locks.
void add_row_lock(Statement* statement, RowLock lock);
AttrNumber row_lock_number(RowLock lock);

} // namespace interlock::inline execution

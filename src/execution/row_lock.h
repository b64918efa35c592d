// How a read locks its row.
#pragma once

#include "table/plan.h"

namespace interlock::inline execution {

// The locking clause of SELECT, and what it does when another transaction has locked the row.
enum class RowStrength : uint8 { kNone, kKeyShare, kShare, kNoKeyUpdate, kUpdate };
enum class RowWait : uint8 { kWait, kNowait, kSkipLocked };
struct RowLock {
    RowStrength strength = RowStrength::kNone;
    RowWait wait = RowWait::kWait;
    CountedKind counted_as = CountedKind::kNone; // where a wait is counted
};

// Raises 25000 in parallel mode when the statement is about to lock rows: the server does so for
// UPDATE, and relies on the planner for SELECT ... FOR UPDATE, which a function that was declared
// parallel safe leads past.
void prevent_in_parallel_mode(RowLock lock);

// Locks the version in the slot by lock(place, wait). A wait that is counted is tried without
// waiting first, to know that it is one.
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

// Adds the clause, if any, to a SELECT; the number distinguishes cached plans of different locks.
void add_row_lock(Statement* statement, RowLock lock);
AttrNumber row_lock_number(RowLock lock);

} // namespace interlock::inline execution

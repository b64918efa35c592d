// The UPDATE or DELETE of one row by its key, described as data: assignments, conditions, and
// columns to return. write_row() runs it without a statement if that does the same
// (execution/update.h), otherwise as a statement. The caller does not know which.
//
//     RowWrite write({rel, info, &key}, PlanKind("version_update"));
//     write.set(changes);
//     write.require(write.terms.equal(write.terms.column(n), write.terms.value(INT8OID, version)));
//     write.returns(n);
//     NullableDatum stored;
//     if (write_row(write, &stored)) ...
//
// Either way the write runs with the caller's privileges and row security, and sees the row with a
// fresh snapshot. It waits for a lock on the row, checks the condition again on the newest version,
// fires triggers, and advances the command counter.
#pragma once

#include "execution/row_write.h"

namespace interlock::inline execution {

struct OpenUpdates;

// Whether a row was found that meets the condition, and was written. False if a trigger or rule has
// suppressed it. `returned` gets the wanted columns, in the current context. Consecutive writes of
// one table share `open`.
bool write_row(const RowWrite& write, NullableDatum* returned = nullptr,
               OpenUpdates* open = nullptr);

// Whether the row may be written without locking it first. If so, any wait for the row came after
// everything was computed.
bool may_write_unlocked(const RowWrite& write);

} // namespace interlock::inline execution

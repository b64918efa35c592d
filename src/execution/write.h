// The UPDATE or DELETE of one row by its key, said once, as data: assignments, conditions, and
// columns to return. write_row() runs it as a statement, or without one where that does the same
// (execution/update.h), and the verb does not know which.
//
//     RowWrite write({rel, info, &key}, PlanKind("version_update"));
//     write.set(changes);
//     write.require(write.terms.equal(write.terms.column(n), write.terms.value(INT8OID, version)));
//     write.returns(n);
//     NullableDatum stored;
//     if (write_row(write, &stored)) ...
//
// Both run with the caller's privileges and row security, see the row as a fresh snapshot does,
// wait for a lock on it, check the condition again on the newest version, fire triggers, and
// advance the command counter.
#pragma once

#include "execution/row_write.h"

namespace interlock::inline execution {

struct OpenUpdates;

// Whether a row was found that meets the condition, and was written: no trigger or rule has
// suppressed it. `returned` gets the columns asked for, in the current context. Writes of one table
// after each other share what is `open`.
bool write_row(const RowWrite& write, NullableDatum* returned = nullptr,
               OpenUpdates* open = nullptr);

// Whether the row may be written without locking it first: a wait for it, if any, then came after
// everything was computed.
bool may_write_unlocked(const RowWrite& write);

} // namespace interlock::inline execution

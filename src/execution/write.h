// The UPDATE or DELETE of one row by its key, said once: what is set, on what condition, and what
// is to come back, as data. write_row() runs it as a statement, or without one where that does the
// same (execution/update.h), and the verb does not know which.
//
//     RowWrite write({rel, info, &key}, PlanKind("version_update"));
//     write.set(changes);
//     write.require(write.terms.equal(write.terms.column(n), write.terms.value(INT8OID, version)));
//     write.returns(n);
//     NullableDatum stored;
//     if (write_row(write, &stored)) ...
//
// Both run with the caller's privileges and row security, see the row as a fresh snapshot does,
// wait for who has it locked, ask the condition again of what it is then, fire triggers, and leave
// a command of their own behind.
#pragma once

#include "execution/row_write.h"

namespace interlock {

struct OpenUpdates;

// Whether a row was found that meets the condition, and was written: no trigger or rule has
// suppressed it. `returned` gets the columns asked for, in the current context. Writes of one table
// after each other share what is `open`.
bool write_row(const RowWrite& write, NullableDatum* returned = nullptr,
               OpenUpdates* open = nullptr);

// Whether the row may be written without locking it first: a wait for it, if there was one, then
// came after everything that was computed.
bool may_write_unlocked(const RowWrite& write);

} // namespace interlock

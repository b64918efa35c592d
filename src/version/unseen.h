// Commands of this transaction that have written rows without knowing what was in them: blind ones
// that were excused for what they wrote, and verbs that count or that touch a parent. A row that
// such a command has left is the transaction's own, but may be newer than what it has read.
#pragma once

#include "server/scope.h"

namespace interlock::version {

extern Oid* unseen_write; // null: none

// Runs body(), a write of this extension of a row of the table that its caller need not have read.
template <typename Body>
void as_unseen_write(Oid table, Body&& body) {
    with_current(&unseen_write, &table, body);
}

// The command writes rows of the table unseen.
void note_unseen(Oid table, CommandId command);

// Whether the row, which this transaction has written, is of such a command.
bool is_unseen(Oid table, HeapTuple row);

} // namespace interlock::version

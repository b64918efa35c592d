// Commands of this transaction that have written rows without having read them. They are blind
// writes that were allowed because the transaction had written the row before, and functions that
// adjust a counter or move a parent. Such a row belongs to the transaction, but may be newer than
// what the transaction has read.
#pragma once

#include "server/scope.h"

namespace interlock::version {

extern Oid* unseen_write; // null: none

// Runs body(), in which the extension writes a row that its caller need not have read.
template <typename Body>
void as_unseen_write(Oid table, Body&& body) {
    with_current(&unseen_write, &table, body);
}

// Notes that the command writes rows of the table without having read them.
void note_unseen(Oid table, CommandId command);

// Whether such a command has written the row. This transaction has written it.
bool is_unseen(Oid table, HeapTuple row);

} // namespace interlock::version

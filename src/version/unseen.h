// Commands of this transaction that have written rows without knowing what was in them: blind ones
// that were excused for what they wrote. A row that such a command has left is the transaction's
// own, but may be newer than what it has read.
#pragma once

#include "server/server.h"

namespace interlock {

// The command writes rows of the table unseen.
void note_unseen(Oid table, CommandId command);

// Whether the row, which this transaction has written, is of such a command.
bool is_unseen(Oid table, HeapTuple row);

} // namespace interlock

// What the current transaction has done to entries and rows of counters. It lasts until the
// transaction ends.
#pragma once

#include "escrow/memory.h"

namespace interlock::escrow {

// Makes room for one more item, so that note_grant() raises nothing (E1).
void need_grant_room();
void note_grant(EscrowEntry* entry, const Delta& delta);
Effects own_effects(const EscrowEntry* entry); // of this transaction on the entry

// Rows that the transaction itself has written. Their counters are not loaded (E7).
void note_own_row(int64 counter);
bool wrote_row_of(int64 counter);

} // namespace interlock::escrow

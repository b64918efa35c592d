// What the current transaction has done to entries and rows of counters, until it ends.
#pragma once

#include "escrow/memory.h"

namespace interlock::escrow {

// Room for one more item, so that note_grant raises nothing (E1).
void need_grant_room();
void note_grant(EscrowEntry* entry, const Delta& delta);
Effects own_effects(const EscrowEntry* entry); // of this transaction on the entry

// Rows that the transaction has written itself: their counters are not loaded (E7).
void note_own_row(int64 counter);
bool wrote_row_of(int64 counter);

} // namespace interlock::escrow

// Waking readers of a history: a notification on channel interlock_history at commit, for tables
// that enable it.
//
// Payload {table}: one for each transaction that has recorded something. With 'full', {table, key}:
// one for each row. Rolled-back savepoints send none.
#pragma once

#include "history/history.h"

namespace interlock::history {

// Call as the writing user, for each entry.
void notify_readers(const TableInfo* info, Datum key);

} // namespace interlock::history

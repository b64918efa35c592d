// Wakes readers of a history by a notification on channel interlock_history at commit, for tables
// that enable it.
//
// The payload is {table}, once for each transaction that has recorded something. With 'full' it is
// {table, key}, once for each row. Savepoints that are rolled back send nothing.
#pragma once

#include "history/history.h"

namespace interlock::history {

// To be called for each entry, as the writing user.
void notify_readers(const TableInfo* info, Datum key);

} // namespace interlock::history

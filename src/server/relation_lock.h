// Locking tables that the caller has not named: views and sweeps go over all tables.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// Locks the table in that mode without waiting, and all that is opened to read its rows: its
// indexes, its TOAST table, and the tables that it is a partition of. False if one of them is
// locked by another transaction; locks that it acquired stay until the subtransaction ends.
bool lock_without_waiting(Oid relid, LOCKMODE mode);

} // namespace interlock::inline server

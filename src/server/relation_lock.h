// Locking tables of others, whom the caller has not asked for: views and sweeps go over all tables.
#pragma once

#include "server/server.h"

namespace interlock {

// Locks the table in that mode without waiting, and whatever else is opened on the way to its rows:
// its indexes, what holds its long values, and the tables that it is a partition of. False if
// somebody has locked any of them; locks that it got stay until the subtransaction ends.
bool lock_without_waiting(Oid relid, LOCKMODE mode);

} // namespace interlock

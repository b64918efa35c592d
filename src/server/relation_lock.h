// Locks tables that the caller has not named. Views and sweeps lock all tables in this way.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// Locks a table in that mode without waiting. Also locks everything that is opened to read its
// rows: its indexes, its TOAST table, and its parent tables if it is a partition. Returns false if
// another transaction has locked any of them. Locks that it has acquired by then stay until the
// subtransaction ends.
bool lock_without_waiting(Oid relid, LOCKMODE mode);

} // namespace interlock::inline server

// The turn of a row: which of the writers that wait for it is next.
//
// Writers that wait for a row by its own lock wait for one version of it: each new version wakes
// all of them, and they wait again for the next one. A turn is a lock of the lock manager on the
// row's key: a fair queue, of which one waiter is awake. The row's lock still decides, so rows
// whose keys have the same hash may share a turn, and a row that is named by another key or table,
// or by another form of a number (1 and 1.0), may have two.
//
// The first turn of a transaction is kept with the row's lock to its end, so that the next in the
// queue wakes once, when it can have the row. Others are held only while the row is being locked,
// as a transaction of very many rows would fill the table of locks: the next then waits for the
// row.
//
// Take it only if another transaction holds the row: the first in the queue waits for that one. A
// transaction that held the row itself would wait for its own end.
#pragma once

#include "table/key.h"

namespace interlock::version {

// Waits in the queue. Errors of the wait (cancel, lock_timeout, deadlock) are those of the server.
LOCKTAG take_turn(Relation rel, const TableInfo* info, const Key& key);

// After the row is locked, or was not found. Without it, and when it is kept, the turn ends with
// the (sub)transaction.
void keep_or_end_turn(const LOCKTAG& turn, bool has_row);

// The table of a turn at a row of this database; InvalidOid for any other lock.
Oid table_of_turn(const LOCKTAG& tag);

} // namespace interlock::version

// The queue of writers that wait for one row.
//
// Writers that wait for the row's own lock wait for one version of the row. Each new version wakes
// all of them, and they wait again for the next version. A turn is a lock of the lock manager on
// the row's key. It is a fair queue in which one waiter is awake. The row's lock still decides. So
// it is harmless that rows whose keys have the same hash share a turn. A row can also have two
// turns, if another unique key or table names it, or another form of a number (1 and 1.0).
//
// The first turn of a transaction is kept, with the row's lock, until the transaction ends. So the
// next writer in the queue wakes up once, when it can have the row. Other turns are held only while
// the row is being locked, because a transaction with very many rows would fill the lock table. The
// next writer then waits for the row itself.
//
// Take a turn only if another transaction holds the row. The first writer in the queue waits for
// that transaction. A transaction that holds the row itself would wait for its own end.
#pragma once

#include "table/key.h"

namespace interlock::version {

// Waits in the queue. A cancel, lock_timeout or deadlock raises the server's error.
LOCKTAG take_turn(Relation rel, const TableInfo* info, const Key& key);

// To be called after the row was locked or was not found. If it is not called, or if the turn is
// kept, the turn ends with the transaction or subtransaction.
void keep_or_end_turn(const LOCKTAG& turn, bool has_row);

// The table, if the lock is a turn for a row of this database. InvalidOid for any other lock.
Oid table_of_turn(const LOCKTAG& tag);

} // namespace interlock::version

// Notifies on channel interlock_escrow when something has returned to a counter, for columns that
// enable it.
//
// The payload is {table, column}. With 'full' it is {table, key, column}. A transaction sends it
// when it commits, once for each counter.
//
// Every return is sent, also while the counter has enough. At the time of the call nobody knows
// whether somebody will be refused before the commit, and what is enough for one caller is too
// little for another. A commit with a notification waits for the commits of others that notify. So
// changes that take something send nothing: they are the load of a counter. Nothing is sent while
// the server's queue of notifications is more than 90 % full.
#pragma once

#include "escrow/escrow.h"
#include "execution/probe.h"

namespace interlock::escrow {

// To be called when the current transaction has added to the counter of the row.
void notify_of_return(const KeyedRow& row, const EscrowColumn& counted);

} // namespace interlock::escrow

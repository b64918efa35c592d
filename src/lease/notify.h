// acquire_lease with `notify`: a caller that is refused is notified on a channel when the lease can
// be had, and needs no connection while it waits. lease/lease.h declares how it asks.
//
// A notification is a hint. It is sent once, to the first who asked, for whom the lease is kept for
// a second. When that one has not come by then, its ticket is over, and the lease is open: those
// behind are notified, and whoever asks first gets it. From the next grant on they have their order
// again. A notification goes out with the transaction that releases a lease, if that is one
// statement, and with a run of the sweeper for all else: leases that expire, or end with their
// session or a transaction that has pinned them.
#pragma once

#include "lease/database.h"
#include "sweeper/task.h"

namespace interlock::lease {

// After ticket_notes: notifies in this transaction if it is one statement; else the sweeper does
// it.
void notify_after_release(LeaseDatabase* database, int partition);

extern const SweepTask kTicketTask;

} // namespace interlock::lease

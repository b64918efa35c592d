// acquire_lease with `notify`: a caller that is refused is notified on a channel when the lease can
// be acquired. It needs no connection while it waits. lease/lease.h declares the calls.
//
// A notification is a hint. It is sent once, to the first caller who asked, and the lease is kept
// for that caller for one second. If the caller has not called again by then, its ticket ends and
// the lease is open. Then the callers behind are notified, and the first one to call gets the
// lease. From the next grant on they have their order again.
//
// If a transaction of one statement releases the lease, it sends the notification when it commits.
// In all other cases a run of the sweeper sends it: leases that expire, that end with their
// session, or that end with a transaction that has pinned them, and if the statement fails or takes
// longer than that second.
#pragma once

#include "lease/database.h"
#include "sweeper/task.h"

namespace interlock::lease {

// To be called when a lease may have become free. If the transaction is one statement, it sends the
// notifications. Otherwise the sweeper sends them.
void notify_at_commit(int partition);

extern const SweepTask kTicketTask;

} // namespace interlock::lease

// What waiters for leases wait for, for views.
#pragma once

#include "lease/queue.h"

namespace interlock::lease {

// If none of the three is set, the waiter is about to get its lease, or to make something durable.
struct LeaseWait {
    const LeaseWaiter* waiter;
    Ref in_the_way;            // a lease that is held or pinned
    const LeaseWaiter* before; // otherwise the nearest waiter that goes first
    int64 recovers_at;         // otherwise the end of the grace
};

// Whether a process waits in the partition. The lock need not be held.
bool has_waiters(int partition);

// Finds the waits one after the other, in the order of the queues. The partition's lock must be
// held exclusively, because expired leases are dropped.
class LeaseWaits {
public:
    explicit LeaseWaits(int partition);
    LeaseWait wait_of(const LeaseWaiter& waiter);

private:
    Ref lease_in_the_way_of(const LeaseWaiter& waiter);

    int64 now_;
    uint32 look_;
};

template <typename Body>
void for_each_lease_wait(int partition, Body&& body) {
    LeaseWaits waits(partition);
    for_each_waiter(partition,
                    [&](const LeaseWaiter& waiter, int) { body(waits.wait_of(waiter)); });
}

// Reports the waits for leases of this database (server/waits.h). None on a standby, and without
// preload.
void report_lease_waits(List** waits);

} // namespace interlock::lease

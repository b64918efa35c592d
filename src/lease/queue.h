// Who waits for leases: a queue for each tree of keys, served in the order of coming.
//
// A waiter is granted its lease by whoever lets go of what was in its way, or by any waiter that
// finds it expired. One that cannot be granted yet keeps those behind it waiting that it would
// exclude, and no others.
#pragma once

#include "lease/grant.h"

namespace interlock {

// One for each backend, on a cache line of its own.
struct alignas(PG_CACHE_LINE_SIZE) LeaseWaiter {
    LeaseClaim claim;
    Latch* latch;
    int32 pid;
    TimestampTz since;
    int64 wake_at; // when to look again at the latest
    bool queued;
    bool has_pins;             // of its own transaction
    TimestampTz pinning_since; // while a transaction of this process pins leases: its start
    int64 token;               // 0: it is not granted yet
    int next;                  // numbers of waiters; 0: none
    int previous;
};

LeaseWaiter* this_waiter();

// All with the lock of the claim's partition held exclusively.

// Puts the waiter at the end of the queue of its tree, or takes it away. has_pins: its transaction
// pins leases.
void join_queue(LeaseWaiter* waiter, bool has_pins);
void leave_queue(LeaseWaiter* waiter);
bool has_queue(Ref node);

// Grants what can be granted, and wakes whom it is granted to. Who first needs something durable is
// woken to see to it; if he is paused, whoever asks behind him is told to.
Decision serve_queue(Ref node, const LeaseWaiter* asking);

// Only if there is a queue.
const LeaseWaiter* first_in_queue(Ref node);

// Ends a lease: at once; or, while it is pinned, with the transactions that pin it; or, if it has a
// record, when that is cleared. A token that is not given back by its holder is lost. What waited
// for it is served.
enum class LeaseEnd { kGivenBack, kLost };
void end_lease(LeaseDatabase* database, Ref ref, LeaseEnd how);

// Drops the lease if it has ended and no transaction pins it any more; what waited is served.
void drop_if_ended_and_serve(Ref ref);

// Runs body(const LeaseWaiter&, place) for each waiter of a partition, of each queue in its order.
template <typename Body>
void for_each_waiter(int partition, Body&& body);

size_t lease_queue_size();
void attach_lease_queue(void* memory, bool found);

int waiter_count();
LeaseWaiter* waiter_number(int number); // from 1

template <typename Body>
void for_each_waiter(int partition, Body&& body) {
    for (int i = 1; i <= waiter_count(); i++) {
        const LeaseWaiter* first = waiter_number(i);
        bool queued = first->queued;
        pg_read_barrier(); // its claim is no older
        if (!queued || first->claim.partition != partition || first->previous != 0)
            continue;
        int place = 1;
        for (int number = i; number != 0; number = waiter_number(number)->next)
            body(*waiter_number(number), place++);
    }
}

} // namespace interlock

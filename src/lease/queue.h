// The waiters for leases: a queue for each tree of keys, first come, first served.
//
// A waiter is granted its lease by the process that ends the lease in its way, or by any waiter
// that finds that one expired. A waiter that cannot be granted yet blocks the later waiters that it
// excludes, and no others.
//
// A call of acquire_leases acquires its keys in one order (compare_keys). From its second key on it
// waits for holders only, and passes the waiters before it: one of these may wait for a lease that
// the call has. So calls never wait for each other in a circle. A call that has what another call
// waits for, and waits itself, waits at a later key than the other: the keys below a path come
// right after it, and no key of a call is above another key of it.
#pragma once

#include "lease/grant.h"

namespace interlock::lease {

// One for each backend, on a cache line of its own.
struct alignas(PG_CACHE_LINE_SIZE) LeaseWaiter {
    LeaseClaim claim;
    Latch* latch;
    int32 pid;
    TimestampTz since;
    int64 wake_at; // when to look again at the latest
    bool queued;
    bool has_pins;             // of its own transaction
    bool resumes;              // a lease of its holder
    bool passes;               // the waiters before it, as its call has other leases
    int64 seen;                // the token of what was in its way last
    TimestampTz pinning_since; // while a transaction of this process pins leases: its start
    int64 token;               // 0: it is not granted yet
    int next;                  // numbers of waiters; 0: none
    int previous;
};

LeaseWaiter* this_waiter();

// All with the lock of the claim's partition held exclusively.

// Appends the waiter, whose claim and flags are set, to the queue of its tree; or removes it.
void join_queue(LeaseWaiter* waiter);
void leave_queue(LeaseWaiter* waiter);
bool has_queue(Ref node);

// Grants what can be granted, and wakes those waiters. A waiter that first needs something durable
// is woken to write it; if it is paused, the next waiter writes it.
Decision serve_queue(Ref node, const LeaseWaiter* asking);

// Of a look at a queue, from its head: notes that one for the key was passed over, and tells
// whether one that was excludes a later one. For the same key a shared lease that waits does not,
// but what keeps it waiting keeps another waiting too; a permit keeps others.
void pass_over(Ref at, LeaseMode mode, uint32 look);
bool is_behind(Ref at, LeaseMode mode, uint32 look);
void pass_over_waiters(int partition, uint32 look);

// The end of a lease is reported to the sweeper if there are tickets (lease/notify.h) that may be
// for it; while it is deferred, it is noted for a caller that notifies by itself.
struct TicketNotes {
    bool is_deferred;
    bool has_ended;
};
extern TicketNotes ticket_notes;

// Only if there is a queue.
LeaseWaiter* first_in_queue(Ref node);

// Ends a lease: at once; or, while it is pinned, with the transactions that pin it; or, if it has a
// record, when that is cleared. A token that its holder has not released is lost. Then serves the
// queue.
enum class LeaseEnd { kGivenBack, kLost };
void end_lease(LeaseDatabase* database, Ref ref, LeaseEnd how);

// Drops the lease if it has ended and no transaction pins it any more, and serves the queue.
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

} // namespace interlock::lease

// The waiters for leases: a queue for each tree of keys, first come, first served.
//
// A waiter is granted its lease by the process that ends the lease it waits for, or by any waiter
// that finds that lease expired. A waiter that cannot be granted its lease yet blocks the later
// waiters that it excludes, and no others.
//
// A call of acquire_leases acquires its keys in one order (compare_keys). From its second key on,
// it waits for holders only and passes the waiters before it, because one of these may wait for a
// lease that the call holds. So calls never wait for each other in a circle. Assume that call A
// holds what call B waits for, and that A waits too. Then A waits at a later key than B. The reason
// is that the keys below a path come right after it, and no key of a call is above another one.
#pragma once

#include "lease/grant.h"

namespace interlock::lease {

// There is one for each backend, on its own cache line.
struct alignas(PG_CACHE_LINE_SIZE) LeaseWaiter {
    LeaseClaim claim;
    Latch* latch;
    int32 pid;
    TimestampTz since;
    int64 wake_at; // when to try again at the latest
    bool queued;
    bool has_pins;             // its own transaction has pins
    bool resumes;              // it may resume a lease of its holder
    bool passes;               // it passes waiters, because its call has other leases
    int64 seen;                // the token of the lease that excluded it last
    TimestampTz pinning_since; // while a transaction of this process pins leases: its start
    int64 token;               // 0: it is not granted yet
    int next;                  // numbers of waiters; 0: none
    int previous;
};

LeaseWaiter* this_waiter();

// For all functions below the lock of the claim's partition must be held exclusively.

// join_queue() appends the waiter to the queue of its tree. Its claim and flags are set. The other
// function removes it.
void join_queue(LeaseWaiter* waiter);
void leave_queue(LeaseWaiter* waiter);
bool has_queue(Ref node);

// Grants the leases that can be granted, and wakes their waiters. If something must become durable
// first, it wakes a waiter to write it. If that waiter is paused, the next waiter writes it.
Decision serve_queue(Ref node, const LeaseWaiter* asking);

// For one pass through a queue, from its head. pass_over() notes that a waiter for the key was not
// granted. The other function tells whether such a waiter blocks a later one. For the same key a
// waiting shared lease does not block another shared lease, but whatever keeps the first waiting
// also keeps the second waiting. A waiting permit blocks other permits.
void pass_over(Ref at, LeaseMode mode, uint32 look);
bool is_behind(Ref at, LeaseMode mode, uint32 look);
void pass_over_waiters(int partition, uint32 look);

// If there are tickets (lease/notify.h) that may be for a lease, its end is reported to the
// sweeper. While that is deferred, the end is noted for a caller that sends the notifications
// itself.
struct TicketNotes {
    bool is_deferred;
    bool has_ended;
};
extern TicketNotes ticket_notes;

// Only if there is a queue.
LeaseWaiter* first_in_queue(Ref node);

// Ends a lease: at once, or with the transactions that pin it, or, if it has a record, when the
// record is cleared. If its holder has not released it, the token is lost. Then serves the queue.
enum class LeaseEnd { kGivenBack, kLost };
void end_lease(LeaseDatabase* database, Ref ref, LeaseEnd how);

// If the lease has ended and no transaction pins it, drops it and serves the queue.
void drop_if_ended_and_serve(Ref ref);

// Runs body(const LeaseWaiter&, place) for each waiter of a partition, queue by queue and in their
// order.
template <typename Body>
void for_each_waiter(int partition, Body&& body);

size_t lease_queue_size();
void attach_lease_queue(void* memory, bool found);

int waiter_count();
LeaseWaiter* waiter_number(int number); // counted from 1

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

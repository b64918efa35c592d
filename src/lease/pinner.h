// The processes whose open transactions have asserted a lease and so pin it.
//
// One is stored in the lease itself; several are in a list in the memory of leases. A process stays
// there until its transaction has ended, and removes itself with the partition's lock held. So
// while the lock is held its entry in the server's array of processes cannot be reused.
#pragma once

#include "lease/lease_table.h"

namespace interlock::lease {

// With the lock of the lease's partition held exclusively. The list counts for the role of the
// lease.
LeaseRoom add_pinner(Lease* lease, LeaseAccess access);

// Removes this process, which has pinned the lease. One that has ended is the caller's to drop.
void remove_pinner(Lease* lease);

struct Pinner {
    int32 pid;
    TimestampTz since; // start of its transaction
};

struct PinList {
    Ref next;
    int count;
    int processes[(kMemoryUnit - sizeof(Ref) - sizeof(int)) / sizeof(int)];
};
static_assert(sizeof(PinList) <= kMemoryUnit);

Pinner pinner_of(int process);

// Their processes, in the current memory context.
List* list_pinners(const Lease& lease);
Datum array_of_pids(const List* pids);

// Runs body(Pinner) for each, with the partition's lock held.
template <typename Body>
void for_each_pinner(const Lease& lease, Body&& body) {
    if (lease.pins == 1)
        body(pinner_of(static_cast<int>(lease.pinned_by)));
    if (lease.pins < 2)
        return;
    for (Ref ref = lease.pinned_by; ref != 0; ref = at<PinList>(ref)->next)
        for (int i = 0; i < at<PinList>(ref)->count; i++)
            body(pinner_of(at<PinList>(ref)->processes[i]));
}

} // namespace interlock::lease

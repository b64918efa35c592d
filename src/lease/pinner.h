// The processes whose open transactions have asserted a lease and so pin it.
//
// One process is stored in the lease itself. Several are in a list in the memory of leases. A
// process stays there until its transaction has ended. It removes itself while it holds the
// partition's lock. So while another process holds the lock, the entry in the server's array of
// processes is not reused.
#pragma once

#include "lease/lease_table.h"

namespace interlock::lease {

// Adds this process. The lock of the lease's partition must be held exclusively. The list is
// charged to the role of the lease.
LeaseRoom add_pinner(Lease* lease, LeaseAccess access);

// Removes this process, which has pinned the lease. The caller drops the lease if it has ended.
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

// The pinning processes, in the current memory context.
List* list_pinners(const Lease& lease);
Datum array_of_pids(const List* pids);

// Runs body(Pinner) for each pinning process, with the partition's lock held.
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

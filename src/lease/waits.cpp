#include "lease/waits.h"

#include "lease/pinner.h"
#include "server/waits.h"

namespace interlock::lease {

static LeaseMode mode_of(const LeaseWaiter& waiter) { return lease_at(waiter.claim.lease)->mode; }

// Whether a waiter goes before a later one: see is_behind (lease/queue.h).
static bool goes_first(const LeaseWaiter& earlier, const LeaseWaiter& later) {
    bool either_exclusive =
        kind_of(mode_of(earlier)) == kExclusiveKind || kind_of(mode_of(later)) == kExclusiveKind;
    if (earlier.claim.node == later.claim.node)
        return either_exclusive || mode_of(later) != LeaseMode::kShared;
    return either_exclusive && (is_at_or_above(earlier.claim.node, later.claim.node) ||
                                is_at_or_above(later.claim.node, earlier.claim.node));
}

static const LeaseWaiter* waiter_before(const LeaseWaiter& waiter) {
    for (int number = waiter.previous; number != 0; number = waiter_number(number)->previous)
        if (goes_first(*waiter_number(number), waiter))
            return waiter_number(number);
    return nullptr;
}

bool has_waiters(int partition) {
    for (int i = 1; i <= waiter_count(); i++)
        if (waiter_number(i)->queued && waiter_number(i)->claim.partition == partition)
            return true;
    return false;
}

LeaseWaits::LeaseWaits(int partition) : now_(monotonic_now()), look_(next_look(partition)) {}

Ref LeaseWaits::lease_in_the_way_of(const LeaseWaiter& waiter) {
    Ref found = in_the_way_of_claim(waiter.claim, now_);
    if (found == 0)
        return 0;
    const Lease& lease = *lease_at(found);
    return is_live(lease, now_) || lease.pins > 0 ? found : 0; // else only its record
}

LeaseWait LeaseWaits::wait_of(const LeaseWaiter& waiter) {
    LeaseWait wait = {&waiter, lease_in_the_way_of(waiter), nullptr, 0};
    if (wait.in_the_way == 0 && !waiter.passes &&
        is_behind(waiter.claim.node, mode_of(waiter), look_))
        wait.before = waiter_before(waiter);
    else if (wait.in_the_way == 0 && is_in_grace(waiter.claim.database, now_))
        wait.recovers_at = read_counter(&waiter.claim.database->serves_from);
    pass_over(waiter.claim.node, mode_of(waiter), look_);
    return wait;
}

// The processes that pin it, else the session that it is bound to, or none.
static void add_lease(Wait* wait, const Lease& lease) {
    Blocker blocker;
    blocker.pid = lease.pid;
    blocker.holder = copy_of_holder(lease);
    blocker.role = lease.role;
    blocker.until = shown_time(lease.expires);
    blocker.what = "lease";
    if (lease.pins == 0)
        wait->add(blocker);
    for_each_pinner(lease, [&](const Pinner& pinner) {
        blocker.pid = pinner.pid;
        wait->add(blocker);
    });
}

static void report(List** waits, const LeaseWait& found) {
    const LeaseWaiter& waiter = *found.waiter;
    Wait wait;
    wait.pid = waiter.pid;
    wait.kind = mode_of(waiter) == LeaseMode::kPermit ? "permit" : "lease";
    wait.name = copy_of_key(*node_at(waiter.claim.node));
    wait.holder = copy_of_holder(*lease_at(waiter.claim.lease));
    wait.since = waiter.since;
    Blocker blocker;
    if (found.in_the_way != 0)
        add_lease(&wait, *lease_at(found.in_the_way));
    else if (found.before != nullptr)
        blocker.pid = found.before->pid;
    else if (found.recovers_at != 0)
        blocker.until = shown_time(found.recovers_at);
    blocker.what = "recovery of leases";
    if (blocker.pid != 0 || blocker.until != 0)
        wait.add(blocker);
    report_wait(waits, wait);
}

void report_lease_waits(List** waits) {
    if (lease_usage() == nullptr || RecoveryInProgress())
        return;
    for (int i = 0; i < kLeasePartitions; i++) {
        CHECK_FOR_INTERRUPTS();
        if (!has_waiters(i))
            continue;
        LWLockAcquire(partition_lock(i), LW_EXCLUSIVE);
        for_each_lease_wait(i, [&](const LeaseWait& wait) {
            if (wait.waiter->claim.database->database == MyDatabaseId)
                report(waits, wait);
        });
        LWLockRelease(partition_lock(i));
    }
}

} // namespace interlock::lease

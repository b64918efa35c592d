#include "lease/usage_view.h"

#include "lease/queue.h"
#include "lease/ticket.h"

namespace interlock::lease {

static int64 count_lease_databases() {
    int64 count = 0;
    const LeaseDatabase* database;
    for (int i = 0; (database = lease_database_number(i)) != nullptr; i++)
        count += OidIsValid(database->database);
    return count;
}

static int64 count_units() {
    int64 sum = 0;
    for (UsageLine line = 0; line < kUsageLines; line++)
        sum += amount_in(read_usage(lease_usage(), line));
    return sum;
}

static int64 count_waiters() {
    int64 count = 0;
    for (int i = 1; i <= waiter_count(); i++)
        count += waiter_number(i)->queued;
    return count;
}

static void report_totals(UsageReport* report) {
    LeaseMemoryUse memory = lease_memory_use();
    report_total(report, "leases", in_units(count_units(), kUnitsPerLease), max_leases);
    report_total(report, "lease memory", static_cast<int64>(memory.used),
                 static_cast<int64>(memory.most));
    report_total(report, "lease waiters", count_waiters(), waiter_count());
    report_total(report, "lease databases", count_lease_databases(), kMaxLeaseDatabases);
}

// Leases that are over count as long as they have their memory.
static void count_uses(UsageReport* report) {
    int leases = add_resource(report, "leases", kUnitsPerLease);
    int waiters = add_resource(report, "lease waiters");
    for (int i = 0; i < kLeasePartitions; i++) {
        CHECK_FOR_INTERRUPTS();
        LWLockAcquire(partition_lock(i), LW_SHARED);
        for_each_lease(i, [=](Ref ref) {
            const Lease& lease = *lease_at(ref);
            count_use(report, leases, lease.role, node_at(lease.node)->database,
                      lease.charge.units);
        });
        for_each_waiter(i, [=](const LeaseWaiter& waiter, int) {
            const Lease& lease = *lease_at(waiter.claim.lease);
            Oid database = waiter.claim.database->database;
            count_use(report, leases, lease.role, database, lease.charge.units);
            count_use(report, waiters, lease.role, database, 1);
            count_use(report, waiters, lease.role, InvalidOid, 1);
        });
        for (Ref ref = *first_ticket(i); ref != 0; ref = ticket_at(ref)->next) {
            const LeaseTicket& ticket = *ticket_at(ref);
            count_use(report, leases, ticket.role, node_at(ticket.node)->database,
                      ticket.charge.units);
        }
        LWLockRelease(partition_lock(i));
    }
}

void report_lease_usage(UsageReport* report) {
    if (lease_usage() == nullptr)
        return;
    report_totals(report);
    report_roles(report, "leases", lease_usage(), kUnitsPerLease, lease_share());
    count_uses(report);
}

} // namespace interlock::lease

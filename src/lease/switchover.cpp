// R12: ends the grace after a planned switchover, once the former primary has confirmed how long
// its leases last. docs/internals/leases.md says why each condition is needed.

#include "lease/database_start.h"
#include "lease/queue.h"
#include "server/arguments.h"
#include "server/result_row.h"
#include "sweeper/deadline.h"
#include "table/configuration_audit.h"
#include "table/settings_json.h"

namespace interlock::lease {

static int64 longest_time_left(Oid database);
[[noreturn]] static void raise_no_such_grace();
static void lower_serves_from(LeaseDatabase* database, int64 until);
static void wake_waiters(const LeaseDatabase* database);

extern "C" {
PG_FUNCTION_INFO_V1(confirm_stop);
PG_FUNCTION_INFO_V1(end_grace);

// confirm_stop(): run, time_left
Datum confirm_stop(PG_FUNCTION_ARGS) {
    require_lease_service();
    if (!RecoveryInProgress())
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("this server is not a standby"),
                        errhint("Call confirm_stop on the server that was the primary before, when "
                                "it follows the new primary.")));
    // Only a clean stop of a server that grants leases saves them, and only the next start has
    // them.
    const LeaseDatabase* database = find_or_make_database(MyDatabaseId);
    bool cannot = database == nullptr || !database->saved || database->loaded;
    Datum values[2] = {0, 0};
    bool nulls[2] = {cannot, cannot};
    if (!cannot) {
        auto* left = static_cast<Interval*>(palloc0(sizeof(Interval)));
        left->time = longest_time_left(MyDatabaseId);
        values[0] = Int64GetDatum(static_cast<int64>(database->saved_run));
        values[1] = IntervalPGetDatum(left);
    }
    return result_row(fcinfo, values, nulls);
}

// end_grace(reason, run, time_left)
Datum end_grace(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    const char* reason = arguments.string(0, "reason");
    if (reason[0] == '\0')
        refuse_empty("reason", "View interlock.audit shows it.");
    auto run = static_cast<uint64>(DatumGetInt64(arguments.required(1, "run")));
    int64 left = duration_or_zero_argument(arguments.interval(2, "time_left"), "time_left",
                                           "Give the result of confirm_stop.");
    LeaseDatabase* database = lease_database();
    int64 now = monotonic_now();
    if (!is_in_grace(database, now) || run != database->found_run)
        raise_no_such_grace();
    JsonObject after;
    after.add("reason", json_text(reason));
    after.add("time_left", json_text(duration_text(left)));
    record_change(arguments, {.kind = "force", .after = after.finish()});
    lower_serves_from(database, now + left);
    int64 ends = read_counter(&database->serves_from);
    ereport(LOG, (errmsg("the grace period of leases ends at %s: %s",
                         timestamptz_to_str(shown_time(ends)), reason)));
    wake_waiters(database);
    report_deadline_now(shown_time(ends)); // for tickets
    PG_RETURN_TIMESTAMPTZ(shown_time(ends));
}
}

// --- On the former primary -----------------------------------------------------------------------

// The new primary has the records of long leases. A renewal for a short time is not recorded.
static int64 longest_time_left(Oid database) {
    int64 longest = 0;
    int64 now = monotonic_now();
    for_each_lease_of(database, [&longest, now](const Lease& lease) {
        int64 left = lease.expires - now;
        if (!has_record(lease) || left <= longest_short_lease())
            longest = Max(longest, left);
    });
    return longest;
}

// --- On the new primary --------------------------------------------------------------------------

[[noreturn]] static void raise_no_such_grace() {
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("there is no grace period of leases after that run"),
             errhint("Give the results of confirm_stop on the server that was the primary before. "
                     "A grace period that is over cannot be ended.")));
}

static void lower_serves_from(LeaseDatabase* database, int64 until) {
    uint64 from = pg_atomic_read_u64(&database->serves_from);
    while (
        static_cast<int64>(from) > until &&
        !pg_atomic_compare_exchange_u64(&database->serves_from, &from, static_cast<uint64>(until)))
        ;
}

static void wake_waiters(const LeaseDatabase* database) {
    for (int i = 0; i < kLeasePartitions; i++) {
        LWLockAcquire(partition_lock(i), LW_EXCLUSIVE);
        for_each_waiter(i, [database](const LeaseWaiter& waiter, int) {
            if (waiter.claim.database == database)
                SetLatch(waiter.latch);
        });
        LWLockRelease(partition_lock(i));
    }
}

} // namespace interlock::lease

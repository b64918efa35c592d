// The views leases and lease_waiters, what view held shows of leases, and the look at one key.

#include "lease/argument.h"
#include "lease/lease.h"
#include "lease/pinner.h"
#include "lease/token_role.h"
#include "lease/waits.h"
#include "server/result_row.h"

namespace interlock::lease {

namespace {

// A lease or a waiter as it was.
struct Listed {
    Lease lease;
    char* key;
    char* holder;
    List* pinners;
    TimestampTz pinned_since;
    int32 pid; // of a waiter
    TimestampTz since;
    int place;
    int waiters; // that it keeps waiting
};

} // namespace

static Listed* copy_of(const Listed& listed, Ref lease, Ref node);

using PutRow = void (*)(ReturnSetInfo* output, const Listed& listed);
static void put_lease_row(ReturnSetInfo* output, const Listed& listed);
static void put_waiter_row(ReturnSetInfo* output, const Listed& listed);
static void put_look_row(ReturnSetInfo* output, const Listed& listed);
static void put_held_row(ReturnSetInfo* output, const Listed& listed);

namespace {

// The leases that keep the waiters of a partition waiting, one for each waiter.
struct Awaited {
    Ref* leases; // as many as there can be waiters
    int count;
};

} // namespace

static void find_awaited(int partition, Awaited* awaited);
static int count_waiters(const Awaited& awaited, Ref lease);

// Runs collect(partition, add) under the partition's lock, and puts a row for each that was added.
template <typename Collect>
static void list_partition(int partition, LWLockMode mode, Collect&& collect, ReturnSetInfo* output,
                           PutRow put_row) {
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "listed leases", ALLOCSET_DEFAULT_SIZES);
    MemoryContext saved = MemoryContextSwitchTo(memory);
    List* all = NIL;
    LWLockAcquire(partition_lock(partition), mode);
    collect(partition, [&all](const Listed& listed, Ref lease, Ref node) {
        all = lappend(all, copy_of(listed, lease, node));
    });
    LWLockRelease(partition_lock(partition));
    ListCell* cell;
    foreach (cell, all)
        put_row(output, *static_cast<const Listed*>(lfirst(cell)));
    MemoryContextSwitchTo(saved);
    MemoryContextDelete(memory);
}

static LWLockMode share(int) { return LW_SHARED; }

// The same for all partitions. A standby has no leases.
template <typename Collect>
static Datum list_all(FunctionCallInfo fcinfo, Collect&& collect, PutRow put_row,
                      LWLockMode (*mode)(int partition) = share) {
    InitMaterializedSRF(fcinfo, 0);
    if (RecoveryInProgress())
        return 0;
    lease_database();
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    for (int i = 0; i < kLeasePartitions; i++) {
        CHECK_FOR_INTERRUPTS();
        list_partition(i, mode(i), collect, output, put_row);
    }
    return 0;
}

extern "C" {
PG_FUNCTION_INFO_V1(list_leases);
PG_FUNCTION_INFO_V1(list_lease_waiters);
PG_FUNCTION_INFO_V1(list_held_leases);
PG_FUNCTION_INFO_V1(lease_of);

Datum list_leases(PG_FUNCTION_ARGS) {
    auto collect = [](int partition, auto&& add) {
        int64 now = monotonic_now();
        for_each_lease(partition, [&](Ref ref) {
            const Lease& lease = *lease_at(ref);
            bool shown = is_live(lease, now) || lease.pins > 0;
            if (shown && node_at(lease.node)->database == MyDatabaseId)
                add(Listed{}, ref, lease.node);
        });
    };
    return list_all(fcinfo, collect, put_lease_row);
}

Datum list_lease_waiters(PG_FUNCTION_ARGS) {
    auto collect = [](int partition, auto&& add) {
        for_each_waiter(partition, [&](const LeaseWaiter& waiter, int place) {
            Listed listed = {};
            listed.pid = waiter.pid;
            listed.since = waiter.since;
            listed.place = place;
            if (waiter.claim.database->database == MyDatabaseId)
                add(listed, waiter.claim.lease, waiter.claim.node);
        });
    };
    return list_all(fcinfo, collect, put_waiter_row);
}

// list_held_leases(permits): the permits, or all others. Without preload there are none.
Datum list_held_leases(PG_FUNCTION_ARGS) {
    bool permits = PG_GETARG_BOOL(0);
    if (lease_usage() == nullptr) {
        InitMaterializedSRF(fcinfo, 0);
        return 0;
    }
    Awaited awaited = {static_cast<Ref*>(palloc(sizeof(Ref) * waiter_count())), 0};
    auto collect = [&](int partition, auto&& add) {
        int64 now = monotonic_now();
        find_awaited(partition, &awaited);
        for_each_lease(partition, [&](Ref ref) {
            const Lease& lease = *lease_at(ref);
            bool shown = (is_live(lease, now) || lease.pins > 0) &&
                         (lease.mode == LeaseMode::kPermit) == permits;
            Listed listed = {};
            if (!shown || node_at(lease.node)->database != MyDatabaseId)
                return;
            listed.waiters = count_waiters(awaited, ref);
            add(listed, ref, lease.node);
        });
    };
    // To see what a waiter waits for takes the stronger lock.
    return list_all(fcinfo, collect, put_held_row, [](int partition) {
        return has_waiters(partition) ? LW_EXCLUSIVE : LW_SHARED;
    });
}

// lease_of(key)
Datum lease_of(PG_FUNCTION_ARGS) {
    LeaseKey key = lease_key_argument(DatumGetTextPP(Arguments(fcinfo).required(0, "key")));
    LeaseDatabase* database = lease_database();
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    for (bool is_stale = true; is_stale;) {
        auto look = [&](int, auto&& add) {
            int64 now = monotonic_now();
            Ref found = find_in_the_way(database, key, now);
            is_stale = found != 0 && !is_live(*lease_at(found), now) && lease_at(found)->pins == 0;
            if (found != 0 && !is_stale)
                add(Listed{}, found, lease_at(found)->node);
        };
        list_partition(key.partition, LW_EXCLUSIVE, look, output, put_look_row);
        if (is_stale)
            clear_records_in_the_way(database, key, LeaseMode::kExclusive);
    }
    return 0;
}
}

static Listed* copy_of(const Listed& listed, Ref lease, Ref node) {
    auto* copy = static_cast<Listed*>(palloc(sizeof(Listed)));
    *copy = listed;
    copy->lease = *lease_at(lease);
    copy->key = copy_of_key(*node_at(node));
    copy->holder = copy_of_holder(*lease_at(lease));
    copy->pinners = list_pinners(*lease_at(lease));
    for_each_pinner(*lease_at(lease), [copy](Pinner pinner) {
        if (copy->pinned_since == 0 || pinner.since < copy->pinned_since)
            copy->pinned_since = pinner.since;
    });
    return copy;
}

static const char* mode_name(LeaseMode mode) {
    switch (mode) {
    case LeaseMode::kExclusive:
        return "exclusive";
    case LeaseMode::kShared:
        return "shared";
    case LeaseMode::kPermit:
        return "permit";
    }
    return nullptr;
}

static Datum ttl_of(const Lease& lease) {
    auto* interval = static_cast<Interval*>(palloc0(sizeof(Interval)));
    interval->time = lease.ttl;
    return IntervalPGetDatum(interval);
}

// key, mode, holder, token, since, expires_at, ttl, pid, pins, durable, pinned_by, pinned_since,
// role, released
static void put_lease_row(ReturnSetInfo* output, const Listed& listed) {
    const Lease& lease = listed.lease;
    Datum values[14] = {CStringGetTextDatum(listed.key),
                        CStringGetTextDatum(mode_name(lease.mode)),
                        CStringGetTextDatum(listed.holder),
                        Int64GetDatum(lease.token),
                        TimestampTzGetDatum(lease.since),
                        TimestampTzGetDatum(shown_time(lease.expires)),
                        ttl_of(lease),
                        Int32GetDatum(lease.pid),
                        Int32GetDatum(static_cast<int32>(lease.pins)),
                        BoolGetDatum(has_record(lease)),
                        lease.pins == 0 ? 0 : array_of_pids(listed.pinners),
                        TimestampTzGetDatum(listed.pinned_since),
                        CStringGetTextDatum(role_name(lease.role)),
                        BoolGetDatum(lease.stay == LeaseStay::kReleased)};
    bool nulls[14] = {};
    nulls[3] = !acts_for(lease.role);
    nulls[6] = lease.pid != 0;
    nulls[7] = lease.pid == 0;
    nulls[10] = nulls[11] = lease.pins == 0;
    add_result_row(output, values, nulls);
}

// mode, holder, token, role, pid, since, expires_at, blocks_key, pinned_by, pinned_since
static void put_look_row(ReturnSetInfo* output, const Listed& listed) {
    const Lease& lease = listed.lease;
    Datum values[10] = {CStringGetTextDatum(mode_name(lease.mode)),
                        CStringGetTextDatum(listed.holder),
                        Int64GetDatum(lease.token),
                        CStringGetTextDatum(role_name(lease.role)),
                        Int32GetDatum(lease.pid),
                        TimestampTzGetDatum(lease.since),
                        TimestampTzGetDatum(shown_time(lease.expires)),
                        CStringGetTextDatum(listed.key),
                        lease.pins == 0 ? 0 : array_of_pids(listed.pinners),
                        TimestampTzGetDatum(listed.pinned_since)};
    bool nulls[10] = {};
    nulls[2] = !acts_for(lease.role);
    nulls[4] = lease.pid == 0;
    nulls[8] = nulls[9] = lease.pins == 0;
    add_result_row(output, values, nulls);
}

// With the partition's lock held, exclusively if it has waiters.
static void find_awaited(int partition, Awaited* awaited) {
    awaited->count = 0;
    if (!LWLockHeldByMeInMode(partition_lock(partition), LW_EXCLUSIVE))
        return;
    for_each_lease_wait(partition, [&](const LeaseWait& wait) {
        if (wait.in_the_way != 0)
            awaited->leases[awaited->count++] = wait.in_the_way;
    });
}

static int count_waiters(const Awaited& awaited, Ref lease) {
    int count = 0;
    for (int i = 0; i < awaited.count; i++)
        count += awaited.leases[i] == lease;
    return count;
}

// name, holder, role, pid, since, expires_at, waiters, mode
static void put_held_row(ReturnSetInfo* output, const Listed& listed) {
    const Lease& lease = listed.lease;
    int pid = lease.pid == 0 && lease.pins > 0 ? linitial_int(listed.pinners) : lease.pid;
    Datum values[8] = {CStringGetTextDatum(listed.key),
                       CStringGetTextDatum(listed.holder),
                       CStringGetTextDatum(role_name(lease.role)),
                       Int32GetDatum(pid),
                       TimestampTzGetDatum(lease.since),
                       TimestampTzGetDatum(shown_time(lease.expires)),
                       Int64GetDatum(listed.waiters),
                       CStringGetTextDatum(mode_name(lease.mode))};
    bool nulls[8] = {};
    nulls[3] = pid == 0;
    add_result_row(output, values, nulls);
}

// key, mode, holder, pid, since, place
static void put_waiter_row(ReturnSetInfo* output, const Listed& listed) {
    Datum values[6] = {
        CStringGetTextDatum(listed.key),    CStringGetTextDatum(mode_name(listed.lease.mode)),
        CStringGetTextDatum(listed.holder), Int32GetDatum(listed.pid),
        TimestampTzGetDatum(listed.since),  Int32GetDatum(listed.place)};
    bool nulls[6] = {};
    add_result_row(output, values, nulls);
}

} // namespace interlock::lease

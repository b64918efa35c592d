// The views leases and lease_waiters.

#include "lease_argument.h"

using namespace interlock;

namespace {

struct ListedLease {
    Lease lease;
    uint16 key_length;
    char key[kMaxLeaseKeyBytes];
    char holder[kMaxHolderBytes];
};

struct ListedWaiter {
    ListedLease asked;
    int32 pid;
    TimestampTz since;
    int place;
};

void put_lease_row(ReturnSetInfo* output, const ListedLease& listed);
void put_waiter_row(ReturnSetInfo* output, const ListedWaiter& listed);
ListedLease copy_of(Ref ref, Ref node);

// What was found under a partition's lock, and is shown without it.
template <typename T>
struct Copies {
    T* items;
    size_t count;
    size_t room;
};

template <typename T>
bool add_copy(Copies<T>* copies, const T& item) {
    if (copies->count == copies->room)
        return false;
    copies->items[copies->count++] = item;
    return true;
}

// As many as there were, and again with more room if that was not enough.
template <typename T, typename Collect>
void copy_partition(int partition, Copies<T>* copies, Collect&& collect) {
    for (bool all = false; !all;) {
        all = true;
        copies->count = 0;
        LWLockAcquire(partition_lock(partition), LW_SHARED);
        collect([&](const T& item) { all = add_copy(copies, item) && all; });
        LWLockRelease(partition_lock(partition));
        if (all)
            return;
        copies->room *= 2;
        copies->items = static_cast<T*>(repalloc_huge(copies->items, sizeof(T) * copies->room));
    }
}

template <typename T>
Copies<T> new_copies() {
    constexpr size_t kRoom = 64;
    return {static_cast<T*>(palloc(sizeof(T) * kRoom)), 0, kRoom};
}

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(list_leases);
PG_FUNCTION_INFO_V1(list_lease_waiters);

Datum list_leases(PG_FUNCTION_ARGS) {
    lease_database();
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    auto copies = new_copies<ListedLease>();
    for (int i = 0; i < kLeasePartitions; i++) {
        CHECK_FOR_INTERRUPTS();
        copy_partition(i, &copies, [&](auto&& add) {
            int64 now = monotonic_now();
            for_each_lease(i, [&](Ref ref) {
                const Lease& lease = *at<Lease>(ref);
                bool shown = is_live(lease, now) || lease.pins > 0;
                if (shown && at<LeaseNode>(lease.node)->database == MyDatabaseId)
                    add(copy_of(ref, lease.node));
            });
        });
        for (size_t k = 0; k < copies.count; k++)
            put_lease_row(output, copies.items[k]);
    }
    return 0;
}

Datum list_lease_waiters(PG_FUNCTION_ARGS) {
    lease_database();
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    auto copies = new_copies<ListedWaiter>();
    for (int i = 0; i < kLeasePartitions; i++) {
        copy_partition(i, &copies, [&](auto&& add) {
            for_each_waiter(i, [&](const LeaseWaiter& waiter, int place) {
                if (waiter.claim.database->database == MyDatabaseId)
                    add(ListedWaiter{copy_of(waiter.claim.lease, waiter.claim.node), waiter.pid,
                                     waiter.since, place});
            });
        });
        for (size_t k = 0; k < copies.count; k++)
            put_waiter_row(output, copies.items[k]);
    }
    return 0;
}
}

namespace {

ListedLease copy_of(Ref ref, Ref node) {
    ListedLease listed;
    listed.lease = *at<Lease>(ref);
    listed.key_length = at<LeaseNode>(node)->length;
    memcpy(listed.key, at<LeaseNode>(node)->key, listed.key_length);
    memcpy(listed.holder, at<Lease>(ref)->holder(), listed.lease.holder_length);
    return listed;
}

const char* mode_name(LeaseMode mode) {
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

Datum text_of(const char* bytes, size_t length) {
    return PointerGetDatum(cstring_to_text_with_len(bytes, static_cast<int>(length)));
}

// Tokens are what a lease can be released with: for its role, and for those who see everything.
bool may_see_token(const ListedLease& listed) {
    return has_privs_of_role(GetUserId(), listed.lease.role) ||
           has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

Datum ttl_of(const Lease& lease) {
    auto* interval = static_cast<Interval*>(palloc0(sizeof(Interval)));
    interval->time = lease.ttl;
    return IntervalPGetDatum(interval);
}

// key, mode, holder, token, since, expires_at, ttl, pid, pins, durable
void put_lease_row(ReturnSetInfo* output, const ListedLease& listed) {
    const Lease& lease = listed.lease;
    Datum values[10] = {text_of(listed.key, listed.key_length),
                        CStringGetTextDatum(mode_name(lease.mode)),
                        text_of(listed.holder, lease.holder_length),
                        Int64GetDatum(lease.token),
                        TimestampTzGetDatum(lease.since),
                        TimestampTzGetDatum(shown_time(lease.expires)),
                        ttl_of(lease),
                        Int32GetDatum(lease.pid),
                        Int32GetDatum(static_cast<int32>(lease.pins)),
                        BoolGetDatum(lease.place.block != InvalidBlockNumber)};
    bool nulls[10] = {};
    nulls[3] = !may_see_token(listed);
    nulls[6] = lease.pid != 0;
    nulls[7] = lease.pid == 0;
    tuplestore_putvalues(output->setResult, output->setDesc, values, nulls);
}

// key, mode, holder, pid, since, place
void put_waiter_row(ReturnSetInfo* output, const ListedWaiter& listed) {
    const ListedLease& asked = listed.asked;
    Datum values[6] = {text_of(asked.key, asked.key_length),
                       CStringGetTextDatum(mode_name(asked.lease.mode)),
                       text_of(asked.holder, asked.lease.holder_length),
                       Int32GetDatum(listed.pid),
                       TimestampTzGetDatum(listed.since),
                       Int32GetDatum(listed.place)};
    bool nulls[6] = {};
    tuplestore_putvalues(output->setResult, output->setDesc, values, nulls);
}

} // namespace

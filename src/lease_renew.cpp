// Renewing, reclaiming and releasing by token.

#include "lease.h"

namespace interlock {

namespace {

constexpr int64 kDefaultTtl = 30 * USECS_PER_SEC;

Lease* lease_at(Ref ref) { return at<Lease>(ref); }

// Runs body(Ref) under the partition's lock; 0: there is no lease with that token.
template <typename Body>
void with_lease(const LeaseKey& key, int64 token, Body&& body) {
    LWLock* lock = partition_lock(key.partition);
    LWLockAcquire(lock, LW_EXCLUSIVE);
    body(find_lease(find_node(key), token));
    LWLockRelease(lock);
}

enum class Renewal { kDone, kLost, kNotDurable, kUnknown };

// One that expired is renewed as long as nobody took it or waits for it.
Renewal renew_at(LeaseDatabase* database, Ref ref, int64 ttl, int64* expires) {
    if (ref == 0)
        return Renewal::kUnknown;
    Lease* lease = lease_at(ref);
    int64 now = monotonic_now();
    if (lease->ended || (lease->expires <= now && has_queue(lease->node)))
        return Renewal::kLost;
    *expires = lease->expires;
    if (lease->pid != 0)
        return Renewal::kDone;
    *expires = Max(lease->expires, now + ttl);
    if (lease->place.block == InvalidBlockNumber && ttl <= longest_short_lease() &&
        !covers(database, *expires))
        return Renewal::kNotDurable;
    lease->expires = *expires;
    lease->ttl = ttl;
    return Renewal::kDone;
}

// R7, and then as a grant with the token of before.
Renewal reclaim_at(const LeaseClaim& claim, const LeaseKey& key, int64 token, int64* expires) {
    int64 now = monotonic_now();
    Lease* lease = lease_at(claim.lease);
    if (!can_reclaim(claim.database, key, token))
        return Renewal::kLost;
    *expires = now + lease->ttl;
    if (lease->ttl <= longest_short_lease() && !covers(claim.database, *expires))
        return Renewal::kNotDurable;
    if (!make_way_for_reclaim(claim, token, now))
        return Renewal::kLost;
    lease->token = token;
    lease->since = GetCurrentTimestamp();
    lease->expires = *expires;
    put_lease(claim.node, claim.lease);
    release_node(claim.node);
    return Renewal::kDone;
}

Renewal reclaim(LeaseDatabase* database, const LeaseKey& key, int64 token, int64 ttl,
                int64* expires) {
    if (!can_reclaim(database, key, token))
        return Renewal::kLost;
    const char* holder = default_holder();
    LeaseRequest request = {key,    mode_of_token(token), PG_INT32_MAX, ttl, LeaseBond::kTtl,
                            holder, strlen(holder)};
    LeaseClaim claim;
    lock_and_claim(database, request, &claim);
    Renewal done = find_lease(claim.node, token) != 0
                       ? Renewal::kNotDurable // somebody has reclaimed it meanwhile: renew
                       : reclaim_at(claim, key, token, expires);
    if (done != Renewal::kDone)
        drop_claim(claim);
    LWLockRelease(partition_lock(key.partition));
    return done;
}

LongLease record_of(const Lease& lease, const LeaseKey& key) {
    LongLease record = {};
    record.key_length = static_cast<uint16>(key.length);
    record.mode = lease.mode;
    record.holder_length = lease.holder_length;
    record.token = lease.token;
    record.expires = lease.expires;
    record.shown_expires = shown_time(lease.expires);
    record.ttl = lease.ttl;
    record.since = lease.since;
    record.role = lease.role;
    memcpy(record.key, key.bytes, key.length);
    memcpy(record.holder, lease.holder(), lease.holder_length);
    return record;
}

} // namespace

int64 renew_lease_of(LeaseDatabase* database, const LeaseKey& key, int64 token, int64 ttl) {
    for (;;) {
        int64 expires = 0;
        int64 wanted = ttl;
        bool has_record = false;
        Renewal renewal = Renewal::kUnknown;
        with_lease(key, token, [&](Ref lease) {
            if (lease != 0 && wanted == 0)
                wanted = lease_at(lease)->ttl;
            renewal = renew_at(database, lease, wanted, &expires);
            has_record = lease != 0 && lease_at(lease)->place.block != InvalidBlockNumber;
        });
        if (wanted == 0)
            wanted = kDefaultTtl;
        if (renewal == Renewal::kUnknown)
            renewal = reclaim(database, key, token, wanted, &expires);
        if (renewal == Renewal::kLost)
            return 0;
        if (renewal == Renewal::kNotDurable) {
            make_durable(database, Min(wanted, longest_short_lease()));
            continue;
        }
        if (expires != kNeverExpires && (has_record || !covers(database, expires)))
            record_lease(database, key, token);
        return expires;
    }
}

bool release_lease_of(LeaseDatabase* database, const LeaseKey& key, int64 token) {
    bool was_held = false;
    StorePlace place = kNoPlace;
    auto end = [&](Ref lease) {
        if (lease == 0 || lease_at(lease)->ended)
            return;
        place = lease_at(lease)->place;
        if (place.block != InvalidBlockNumber)
            return;
        was_held = is_live(*lease_at(lease), monotonic_now());
        end_lease(database, lease, LeaseEnd::kGivenBack);
    };
    with_lease(key, token, end);
    while (place.block != InvalidBlockNumber) { // R9: first its record, then the lease
        forget_long_lease(database, place, token);
        with_lease(key, token, [&](Ref lease) {
            if (lease != 0 && lease_at(lease)->place.block == place.block &&
                lease_at(lease)->place.offset == place.offset)
                lease_at(lease)->place = kNoPlace;
            place = kNoPlace;
            end(lease);
        });
    }
    return was_held;
}

void take_back_lease(LeaseDatabase* database, const LeaseKey& key, int64 token) {
    with_lease(key, token, [database](Ref lease) {
        if (lease != 0 && !lease_at(lease)->ended)
            end_lease(database, lease, LeaseEnd::kGivenBack);
    });
}

void time_lease(const LeaseKey& key, int64 token, int64 expires) {
    with_lease(key, token, [&](Ref lease) {
        if (lease == 0)
            return;
        lease_at(lease)->expires = expires;
        lease_at(lease)->pid = 0;
    });
}

void record_lease(LeaseDatabase* database, const LeaseKey& key, int64 token) {
    LongLease record = {};
    StorePlace place = kNoPlace;
    with_lease(key, token, [&](Ref lease) {
        if (lease == 0)
            return;
        record = record_of(*lease_at(lease), key);
        place = lease_at(lease)->place;
    });
    if (record.token == 0)
        return;
    record.boot = this_boot();
    record_long_lease(database, record, &place);
    bool is_there = false;
    with_lease(key, token, [&](Ref lease) {
        is_there = lease != 0 && !lease_at(lease)->ended;
        if (is_there)
            lease_at(lease)->place = place;
    });
    if (!is_there)
        forget_long_lease(database, place, token);
}

} // namespace interlock

// R9: records of long leases: written before they are granted, cleared before they are followed by
// others.

#include "lease.h"

namespace interlock {

namespace {

Lease* lease_at(Ref ref) { return at<Lease>(ref); }

LongLease record_of(const Lease& lease, const LeaseKey& key) {
    LongLease record = {};
    record.key_length = static_cast<uint16>(key.length);
    record.holder_length = lease.holder_length;
    record.lease = lease;
    record.shown_expires = shown_time(lease.expires);
    memcpy(record.key, key.bytes, key.length);
    memcpy(record.holder, lease.holder(), lease.holder_length);
    return record;
}

bool is_same_place(const StorePlace& left, const StorePlace& right) {
    return left.block == right.block && left.offset == right.offset;
}

// A lease that is over but for its record.
struct Stale {
    int64 token; // 0: there is none
    StorePlace place;
    size_t key_length;
    char key[kMaxLeaseKeyBytes];
};

void find_stale(const LeaseDatabase* database, int partition, Stale* stale) {
    stale->token = 0;
    LWLockAcquire(partition_lock(partition), LW_SHARED);
    for (Ref ref = first_lease(partition); ref != 0 && stale->token == 0; ref = next_lease(ref)) {
        const Lease& lease = *lease_at(ref);
        const LeaseNode& node = *at<LeaseNode>(lease.node);
        if (!lease.ended || !has_record(lease) || node.database != database->database)
            continue;
        stale->token = lease.token;
        stale->place = lease.place;
        stale->key_length = node.length;
        memcpy(stale->key, node.key, node.length);
    }
    LWLockRelease(partition_lock(partition));
}

} // namespace

void record_lease(LeaseDatabase* database, const LeaseKey& key, int64 token) {
    LongLease record = {};
    StorePlace place = kNoPlace;
    with_lease(key, token, [&](Ref lease) {
        if (lease == 0)
            return;
        record = record_of(*lease_at(lease), key);
        place = lease_at(lease)->place;
    });
    if (record.lease.token == 0)
        return;
    record.boot = this_boot();
    record_long_lease(database, record, &place);
    bool is_ours = false;
    with_lease(key, token, [&](Ref lease) {
        if (lease == 0 || lease_at(lease)->ended)
            return; // released or broken meanwhile
        if (!has_record(*lease_at(lease)))
            lease_at(lease)->place = place;
        is_ours = is_same_place(lease_at(lease)->place, place);
    });
    if (!is_ours)
        forget_long_lease(database, place, token);
}

void clear_records(LeaseDatabase* database, int partition) {
    Stale stale;
    for (find_stale(database, partition, &stale); stale.token != 0;
         find_stale(database, partition, &stale)) {
        CHECK_FOR_INTERRUPTS();
        forget_long_lease(database, stale.place, stale.token);
        LeaseKey key = lease_key(database->database, stale.key, stale.key_length);
        with_lease(key, stale.token, [&](Ref lease) {
            if (lease == 0 || !lease_at(lease)->ended)
                return;
            lease_at(lease)->place = kNoPlace;
            end_lease(database, lease, LeaseEnd::kGivenBack);
        });
    }
}

} // namespace interlock

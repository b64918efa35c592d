// R9: records of long leases: written before the grant, cleared before the next grant.

#include "lease/lease.h"

namespace interlock::lease {

// With an expiry that is never earlier than that of the lease, if that has one yet.
static LongLease record_of(const Lease& lease, const LeaseKey& key, int64 until) {
    LongLease record = {};
    record.key_length = static_cast<uint16>(key.length);
    record.holder_length = lease.holder_length;
    record.stay = lease.stay;
    record.release_gives = lease.release_gives;
    record.lease = lease;
    record.lease.expires = lease.expires == kNeverExpires ? until : Max(lease.expires, until);
    record.lease.span = Max(lease.span, record.lease.expires - monotonic_now());
    record.shown_expires = shown_time(record.lease.expires);
    memcpy(record.key, key.bytes, key.length);
    lease.copy_holder(record.holder);
    return record;
}

static bool is_same_place(const StorePlace& left, const StorePlace& right) {
    return left.block == right.block && left.offset == right.offset;
}

namespace {

// A lease that is over but for its record.
struct Stale {
    size_t key_length;
    char key[kMaxLeaseKeyBytes];
};

struct StaleLeases {
    Stale* leases;
    RecordOf* records;
    int count;
};

} // namespace

constexpr int kMostAtOnce = 64;

namespace {

// What is wanted, in whose way expired leases are to end.
struct Wanted {
    const LeaseKey* key; // null: nothing
    LeaseMode mode;
};

} // namespace

static bool is_in_the_way(const Lease& lease, const Wanted& wanted) {
    if (lease.mode != LeaseMode::kExclusive && wanted.mode != LeaseMode::kExclusive)
        return false;
    KeyRoom room;
    return are_related(key_of(*node_at(lease.node), room), *wanted.key);
}

static void end_if_expired(LeaseDatabase* database, Ref ref, const Wanted& wanted, int64 now) {
    const Lease& lease = *lease_at(ref);
    if (!lease.ended && wanted.key != nullptr && is_in_the_way(lease, wanted))
        (void)drop_if_over(database, ref, now); // it stays, as it has a record
}

static void find_stale(LeaseDatabase* database, int partition, const Wanted& wanted,
                       StaleLeases* stale) {
    stale->count = 0;
    LWLockAcquire(partition_lock(partition), LW_EXCLUSIVE);
    int64 now = monotonic_now();
    for (Ref ref = first_lease(partition); ref != 0 && stale->count < kMostAtOnce;
         ref = next_lease(ref)) {
        const Lease& lease = *lease_at(ref);
        const LeaseNode& node = *node_at(lease.node);
        if (!has_record(lease) || node.database != database->database)
            continue;
        end_if_expired(database, ref, wanted, now);
        if (!lease.ended)
            continue;
        stale->records[stale->count] = {lease.place, lease.token};
        Stale* copy = &stale->leases[stale->count++];
        copy->key_length = node.length;
        node.copy_key(copy->key);
    }
    LWLockRelease(partition_lock(partition));
}

// Notes the place that was just written. Whether the lease is still there; `former` is where
// another record of it is then.
static bool take_place(const LeaseKey& key, const LongLease& record, StorePlace place,
                       StorePlace* former, bool* is_current) {
    bool is_there = false;
    *former = kNoPlace;
    with_lease(key, record.lease.token, [&](Ref ref) {
        is_there = ref != 0 && !lease_at(ref)->ended;
        if (!is_there)
            return; // released or broken meanwhile
        Lease* lease = lease_at(ref);
        if (has_record(*lease) && !is_same_place(lease->place, place))
            *former = lease->place;
        lease->place = place;
        *is_current = lease->expires == kNeverExpires || lease->expires <= record.lease.expires;
    });
    return is_there;
}

// The place is noted before the record is durable, as that can take long and be canceled: the
// process that ends the lease then clears the record. A record of it elsewhere is cleared after
// this one in the WAL, so that a crash leaves one of them at least.
static RecordWrite write_and_flush(LeaseDatabase* database, const LeaseKey& key,
                                   const LongLease& record, StorePlace place, bool* is_current) {
    if (place.block == InvalidBlockNumber)
        place.block = pg_atomic_read_u32(&database->free_block);
    Relation store = open_store();
    XLogRecPtr last = write_long_lease(store, record, &place);
    StorePlace former;
    bool is_there = take_place(key, record, place, &former, is_current);
    if (!is_there)
        former = place;
    if (former.block != InvalidBlockNumber)
        last = Max(last, clear_long_lease(store, former, record.lease.token));
    bool is_durable = try_flush_store(last);
    close_store(store);
    pg_atomic_write_u32(&database->free_block, place.block);
    if (!is_durable)
        return RecordWrite::kCanceled;
    return is_there ? RecordWrite::kDone : RecordWrite::kOver;
}

// The expiry that is returned to the holder, once a record until `until` is durable; 0: the lease
// is over, as another client waits for it, or the record does not last as long.
static int64 begin_time(Ref ref, int64 ttl, int64 earliest, int64 until, bool* is_over) {
    int64 now = monotonic_now();
    Lease* lease = lease_at(ref);
    *is_over =
        ref == 0 || lease->is_given_back() || (lease->expires <= now && has_queue(lease->node));
    int64 expires = Max(earliest, now + ttl);
    if (*is_over || expires > until)
        return 0;
    if (earliest == 0) // new: all of its time begins now
        lease->expires = Max(lease->expires, expires);
    else
        lease->extend(Max(lease->expires, expires));
    lease->span = lease->expires - now;
    return expires;
}

// The record is written until it says what memory says: another renewal may be at work too.
RecordWrite write_record(LeaseDatabase* database, const LeaseKey& key, int64 token, int64 until) {
    for (bool is_current = false; !is_current;) {
        LongLease record = {};
        StorePlace place = kNoPlace;
        with_lease(key, token, [&](Ref lease) {
            if (lease == 0 || lease_at(lease)->ended)
                return;
            record = record_of(*lease_at(lease), key, until);
            place = lease_at(lease)->place;
        });
        if (record.lease.token == 0)
            return RecordWrite::kOver;
        record.boot = this_boot();
        RecordWrite write = write_and_flush(database, key, record, place, &is_current);
        if (write != RecordWrite::kDone)
            return write;
    }
    return RecordWrite::kDone;
}

void give_back_recorded(LeaseDatabase* database, const LeaseKey& key, int64 token) {
    StorePlace place = kNoPlace;
    with_lease(key, token, [&](Ref lease) {
        if (lease == 0)
            return;
        place = lease_at(lease)->place;
        end_lease(database, lease, LeaseEnd::kGivenBack);
    });
    if (place.block == InvalidBlockNumber)
        return;
    Relation store = open_store();
    (void)clear_long_lease(store, place, token);
    close_store(store);
}

// The record lasts a little longer than needed, so that time can begin when it is durable. If it
// took longer than that, because a synchronous standby was away, it is written once more.
int64 record_lease(LeaseDatabase* database, const LeaseKey& key, int64 token, int64 ttl,
                   int64 earliest) {
    for (int64 reserve = kRecordReserve;;) {
        int64 began = monotonic_now();
        int64 until = Max(earliest, began + ttl + reserve);
        RecordWrite write = write_record(database, key, token, until);
        if (write == RecordWrite::kOver)
            return 0;
        if (write == RecordWrite::kCanceled) {
            if (earliest == 0)
                give_back_recorded(database, key, token);
            raise_not_on_standbys();
        }
        bool is_over = false;
        int64 expires = 0;
        with_lease(key, token,
                   [&](Ref lease) { expires = begin_time(lease, ttl, earliest, until, &is_over); });
        if (expires != 0 || is_over)
            return expires;
        reserve = 2 * (monotonic_now() - began);
    }
}

static void clear(LeaseDatabase* database, int partition, const Wanted& wanted) {
    StaleLeases stale = {static_cast<Stale*>(palloc(sizeof(Stale) * kMostAtOnce)),
                         static_cast<RecordOf*>(palloc(sizeof(RecordOf) * kMostAtOnce)), 0};
    for (find_stale(database, partition, wanted, &stale); stale.count > 0;
         find_stale(database, partition, wanted, &stale)) {
        CHECK_FOR_INTERRUPTS();
        forget_long_leases(database, stale.records, stale.count);
        for (int i = 0; i < stale.count; i++) {
            const Stale& over = stale.leases[i];
            LeaseKey key = lease_key(database->database, over.key, over.key_length);
            with_lease(key, stale.records[i].token, [&](Ref lease) {
                if (lease == 0 || !lease_at(lease)->ended)
                    return;
                lease_at(lease)->place = kNoPlace;
                end_lease(database, lease, LeaseEnd::kGivenBack);
            });
        }
    }
    pfree(stale.leases);
    pfree(stale.records);
}

void clear_records(LeaseDatabase* database, int partition) {
    clear(database, partition, {nullptr, LeaseMode::kShared});
}

void clear_records_in_the_way(LeaseDatabase* database, const LeaseKey& key, LeaseMode mode) {
    clear(database, key.partition, {&key, mode});
}

void make_room(LeaseDatabase* database) {
    forget_dropped_databases();
    drop_expired_leases();
    for (int i = 0; i < kLeasePartitions; i++)
        clear_records(database, i);
}

} // namespace interlock::lease

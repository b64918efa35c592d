// Whether a lease can be granted now: what is in its way, and what has to be durable first.
#pragma once

#include "lease/database.h"

namespace interlock::lease {

// A requested lease, complete but for the token and the times.
struct LeaseClaim {
    LeaseDatabase* database;
    int partition;
    Ref node;
    Ref lease;
    int capacity; // of a permit
    LeaseAccess access;
    bool is_free;      // R4: nothing is in its way, and nothing that would be is granted before it:
    uint64 lost_until; // what was in its way was lost by this change
};

// Not yet: something must become durable first, or the record of an ended lease must be cleared
// (clear_records).
enum class Verdict {
    kGranted,
    kInTheWay,
    kRecovering,
    kNotDurable,
    kStaleRecord,
    kOtherCapacity, // cannot be granted: an error
};

struct Decision {
    Verdict verdict;
    Ref in_the_way; // a lease, if it is one
    int64 until;    // when to ask again at the latest
    int64 ttl = 0;  // kNotDurable: of the lease that needs time
};

// Whether the caller must do something before it can be granted, rather than wait.
inline bool needs_work(const Decision& decision) {
    return decision.verdict == Verdict::kNotDurable || decision.verdict == Verdict::kStaleRecord;
}

// Grants the claim if nothing is in its way, and links its lease to its key. Expired leases that
// are in the way are lost and dropped. With the partition's lock held exclusively; the claim uses
// its node. A claim that is decided again must have been in the queue since.
Decision decide(LeaseClaim* claim, int64 now);

// A lease that is in the way of an exclusive one: at the key, else above it, nearest first, else
// below; 0: there is none. With the partition's lock held exclusively, as expired leases that are
// in the way are lost and dropped; one that is over but for its record is found (clear_records).
Ref find_in_the_way(LeaseDatabase* database, const LeaseKey& key, int64 now);

// The same for a lease of the kind at a key that somebody uses.
Ref in_the_way_of(LeaseDatabase* database, Ref node, LeaseKind wanted, int64 now);

// Of a key with as many permits as the capacity: the permit that ends first. Else 0.
Ref permit_in_the_way(LeaseDatabase* database, Ref node, int capacity, int64 now);

// A lease that is in the way of the claim, of a full permit the one that ends first; 0: there is
// none. With the partition's lock held exclusively, as find_in_the_way.
Ref in_the_way_of_claim(const LeaseClaim& claim, int64 now);

// The capacity with which permits of the claim's key are held, if it differs from the claim's; else
// 0. The first of them fixes it, until none is held any more.
int other_capacity(const LeaseClaim& claim);

// R7: a reclaimed token has the key if it is higher than those in its way, whose leases are
// dropped.
Decision make_way_for_reclaim(const LeaseClaim& claim, int64 token, int64 now);

inline bool has_record(const Lease& lease) { return lease.place.block != InvalidBlockNumber; }
inline bool is_live(const Lease& lease, int64 now) { return !lease.ended && lease.expires > now; }

// Drops an ended lease, unless it is pinned. An expired one is lost: its holder may not know, and
// must not reclaim it after a crash. One with a record stays until that is cleared.
bool drop_if_over(LeaseDatabase* database, Ref ref, int64 now);
bool drop_ended(Ref ref); // one that is known to be over

// Drops the expired leases of a partition, or of all, to free memory: then with no lock held.
void drop_expired_in(int partition);
void drop_expired_leases();

} // namespace interlock::lease

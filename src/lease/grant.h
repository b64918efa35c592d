// Decides whether a lease can be granted now: which leases exclude it, and what has to be durable
// first.
#pragma once

#include "lease/database.h"

namespace interlock::lease {

// A requested lease, complete except for the token and the times.
struct LeaseClaim {
    LeaseDatabase* database;
    int partition;
    Ref node;
    Ref lease;
    int capacity; // of a permit
    LeaseAccess access;
    bool is_free;      // R4: no lease excludes it, and none that would is granted before it:
    uint64 lost_until; // what excluded it was lost by this change
};

// kNotDurable and kStaleRecord: something must become durable first, or the record of an ended
// lease must be cleared (clear_records()).
enum class Verdict {
    kGranted,
    kInTheWay,
    kRecovering,
    kNotDurable,
    kStaleRecord,
    kOtherCapacity, // an error: it cannot be granted
};

struct Decision {
    Verdict verdict;
    Ref in_the_way; // the lease that excludes it, if it is a lease
    int64 until;    // when to decide again at the latest
    int64 ttl = 0;  // kNotDurable: ttl of the lease for which time is reserved
};

// Whether the caller must do something before the lease can be granted. Otherwise it waits.
inline bool needs_work(const Decision& decision) {
    return decision.verdict == Verdict::kNotDurable || decision.verdict == Verdict::kStaleRecord;
}

// Grants the claim if no lease excludes it, and links its lease to its key. Expired leases that
// would exclude it are lost and dropped. The partition's lock must be held exclusively, and the
// claim must use its node. A claim that is decided a second time must have been in the queue since.
Decision decide(LeaseClaim* claim, int64 now);

// A lease that excludes an exclusive one: at the key, otherwise above it (the nearest first),
// otherwise below it. 0: there is none. The partition's lock must be held exclusively, because
// expired leases found on the way are lost and dropped. It also finds a lease that is over except
// for its record (clear_records()).
Ref find_in_the_way(LeaseDatabase* database, const LeaseKey& key, int64 now);

// The same for a lease of that kind at a key that a process uses.
Ref in_the_way_of(LeaseDatabase* database, Ref node, LeaseKind wanted, int64 now);

// If the key has as many permits as `capacity`: the permit that ends first. Otherwise 0.
Ref permit_in_the_way(LeaseDatabase* database, Ref node, int capacity, int64 now);

// A lease that excludes the claim. If all permits are in use, the permit that ends first. 0: there
// is none. The partition's lock must be held exclusively, as in find_in_the_way().
Ref in_the_way_of_claim(const LeaseClaim& claim, int64 now);

// The capacity of the permits that are held at the claim's key, if it differs from the claim's
// capacity. Otherwise 0. The first permit fixes the capacity until no permit is held.
int other_capacity(const LeaseClaim& claim);

// R7: a reclaimed token gets the key if it is higher than the tokens of the leases that exclude it.
// These leases are dropped.
Decision make_way_for_reclaim(const LeaseClaim& claim, int64 token, int64 now);

inline bool has_record(const Lease& lease) { return lease.place.block != InvalidBlockNumber; }
inline bool is_live(const Lease& lease, int64 now) { return !lease.ended && lease.expires > now; }

// Drops an ended lease, unless it is pinned. An expired lease is lost: its holder may not know
// that, and must not reclaim it after a crash. A lease with a record stays until the record is
// cleared.
bool drop_if_over(LeaseDatabase* database, Ref ref, int64 now);
bool drop_ended(Ref ref); // a lease that is known to be over

// Drops the expired leases of a partition. The second function does it for all partitions, to free
// memory, and no lock must be held.
void drop_expired_in(int partition);
void drop_expired_leases();

} // namespace interlock::lease

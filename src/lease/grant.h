// Whether a lease can be granted now: what is in its way, and what has to be durable first.
#pragma once

#include "lease/service.h"

namespace interlock {

// A lease that is asked for, filled in but for the token and the times.
struct LeaseClaim {
    LeaseDatabase* database;
    int partition;
    Ref node;
    Ref lease;
    int capacity; // of a permit
    LeaseAccess access;
};

// Not yet: something has to be made durable first, or the record of a lease that is over has to be
// cleared (clear_records).
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

// Whether something is to be done before it can be granted, rather than waited for.
inline bool needs_work(const Decision& decision) {
    return decision.verdict == Verdict::kNotDurable || decision.verdict == Verdict::kStaleRecord;
}

// Grants the claim if nothing is in its way, and hangs its lease at its key. Expired leases that
// are in the way are lost and dropped. With the partition's lock held exclusively; the claim uses
// its node.
Decision decide(const LeaseClaim& claim, int64 now);

// The capacity that permits of the claim's key are held for, if it is another than the claim's;
// else 0. The first of them has fixed it, until none is held any more.
int other_capacity(const LeaseClaim& claim);

// R7: a reclaimed token has the key if it is higher than those in its way, whose leases are
// dropped.
Decision make_way_for_reclaim(const LeaseClaim& claim, int64 token, int64 now);

inline bool has_record(const Lease& lease) { return lease.place.block != InvalidBlockNumber; }
inline bool is_live(const Lease& lease, int64 now) { return !lease.ended && lease.expires > now; }

// Drops a lease that is over, unless it is pinned. One that expired is lost: its holder may not
// know, and must not reclaim it after a crash. One with a record stays until that is cleared.
bool drop_if_over(LeaseDatabase* database, Ref ref, int64 now);
bool drop_ended(Ref ref); // one that is known to be over

// Drops expired leases everywhere, for room. With no lock held.
void drop_expired_leases();

} // namespace interlock

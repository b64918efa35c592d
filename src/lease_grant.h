// Whether a lease can be granted now: what is in its way, and what has to be durable first.
#pragma once

#include "lease_service.h"

namespace interlock {

// A lease that is asked for, filled in but for the token and the times.
struct LeaseClaim {
    LeaseDatabase* database;
    int partition;
    Ref node;
    Ref lease;
    int capacity; // of a permit
};

enum class Verdict { kGranted, kInTheWay, kRecovering, kNotDurable };

struct Judgement {
    Verdict verdict;
    Ref in_the_way; // a lease, if it is one
    int64 until;    // when to ask again at the latest
};

// Grants the claim if nothing is in its way, and hangs its lease at its key. Expired leases that
// are in the way are lost and dropped. With the partition's lock held exclusively; the claim uses
// its node.
Judgement judge(const LeaseClaim& claim, int64 now);

// R7: drops the leases with a lower token that exclude a reclaimed one; false: one with a higher
// token does.
bool make_way_for_reclaim(const LeaseClaim& claim, int64 token, int64 now);

inline bool is_live(const Lease& lease, int64 now) { return !lease.ended && lease.expires > now; }

// Drops expired leases everywhere, for room. With no lock held.
void drop_expired_leases();

} // namespace interlock

#include "lease/grant.h"

#include "contention/count.h"
#include "lease/ticket.h"

namespace interlock::lease {

// Not as the server stops.
static void count_expiry(const Lease& lease) {
    if (!IsUnderPostmaster)
        return;
    const LeaseNode& node = *node_at(lease.node);
    KeyRoom room;
    count(line_of_key(CountedKind::kLease, {key_bytes(node, room), node.length}, lease.role,
                      node.database),
          Counter::kExpiries);
}

static LeaseKind kind_of_claim(const LeaseClaim& claim) {
    return kind_of(lease_at(claim.lease)->mode);
}

static bool excludes(LeaseKind wanted, LeaseKind held) {
    return wanted == kExclusiveKind || held == kExclusiveKind;
}

static bool any_excludes(LeaseKind wanted, const uint32 counts[2]) {
    return counts[kExclusiveKind] > 0 || (wanted == kExclusiveKind && counts[kSharedKind] > 0);
}

// --- Conflicting leases --------------------------------------------------------------------------

// A lease at the key that excludes the kind and cannot be dropped.
static Ref in_the_way_at(LeaseDatabase* database, Ref node, LeaseKind wanted, int64 now) {
    if (!any_excludes(wanted, node_at(node)->here))
        return 0;
    Ref next;
    for (Ref lease = node_at(node)->leases; lease != 0; lease = next) {
        next = lease_at(lease)->next;
        if (excludes(wanted, kind_of(lease_at(lease)->mode)) && !drop_if_over(database, lease, now))
            return lease;
    }
    return 0;
}

// The first of the siblings, from this one on, that the counts lead to.
static Ref excluding(Ref sibling, LeaseKind wanted) {
    while (sibling != 0 && !any_excludes(wanted, node_at(sibling)->here) &&
           !any_excludes(wanted, node_at(sibling)->below))
        sibling = node_at(sibling)->next_sibling;
    return sibling;
}

// The next key of a walk below `top`, after the key *node, which is left for it: descendants first.
static Ref next_excluding(Ref top, Ref* node, LeaseKind wanted) {
    Ref next = excluding(node_at(*node)->first_child, wanted);
    while (next == 0 && *node != top) {
        Ref left = *node;
        next = excluding(node_at(left)->next_sibling, wanted);
        *node = node_at(left)->parent;
        release_node(left);
    }
    return next;
}

// A lease below the key, which has users, that excludes the kind and cannot be dropped. As a drop
// may drop a key, the walk is a user of those on its path. It continues from there and does not
// begin again: others wait for the lock meanwhile.
static Ref in_the_way_below(LeaseDatabase* database, Ref top, LeaseKind wanted, int64 now) {
    if (!any_excludes(wanted, node_at(top)->below))
        return 0;
    Ref found = 0;
    for (Ref node = top; found == 0;) {
        Ref next = next_excluding(top, &node, wanted);
        if (next == 0)
            return 0;
        node = next;
        node_at(node)->users++;
        found = in_the_way_at(database, node, wanted, now);
    }
    for (Ref left = lease_at(found)->node; left != top;) {
        Ref parent = node_at(left)->parent;
        release_node(left);
        left = parent;
    }
    return found;
}

Ref permit_in_the_way(LeaseDatabase* database, Ref node, int capacity, int64 now) {
    int taken = 0;
    Ref first = 0;
    Ref next;
    for (Ref lease = node_at(node)->leases; lease != 0; lease = next) {
        next = lease_at(lease)->next;
        if (lease_at(lease)->mode != LeaseMode::kPermit || drop_if_over(database, lease, now))
            continue;
        taken++;
        if (first == 0 || lease_at(lease)->expires < lease_at(first)->expires)
            first = lease;
    }
    return capacity != 0 && taken >= capacity ? first : 0;
}

static pg_attribute_always_inline Ref search_the_way(LeaseDatabase* database, Ref node,
                                                     LeaseKind wanted, int64 now) {
    for (Ref level = node; level != 0; level = node_at(level)->parent) {
        Ref found = in_the_way_at(database, level, wanted, now);
        if (found != 0)
            return found;
    }
    return in_the_way_below(database, node, wanted, now);
}

static Ref in_the_way(const LeaseClaim& claim, int64 now) {
    Ref found = search_the_way(claim.database, claim.node, kind_of_claim(claim), now);
    if (found == 0 && lease_at(claim.lease)->mode == LeaseMode::kPermit)
        found = permit_in_the_way(claim.database, claim.node, claim.capacity, now);
    return found;
}

// An ended lease is in the way while it has a record or is pinned.
static Decision decide_in_the_way(Ref ref, int64 now) {
    const Lease& lease = *lease_at(ref);
    if (is_live(lease, now))
        return {Verdict::kInTheWay, ref, lease.expires};
    if (lease.pins > 0)
        return {Verdict::kInTheWay, ref, kNeverExpires};
    return {Verdict::kStaleRecord, ref, now};
}

// A lease that is there already, as it was reclaimed or has a record, has a holder.
static Decision decide_in_grace(const LeaseClaim& claim, int64 now) {
    Ref found = in_the_way(claim, now);
    if (found != 0 && is_live(*lease_at(found), now))
        return decide_in_the_way(found, now);
    return {Verdict::kRecovering, 0, read_counter(&claim.database->serves_from)};
}

// --- What has to be durable ----------------------------------------------------------------------

static bool is_long(const Lease& lease) { return lease.pid != 0 || lease.long_term; }

static int64 wanted_time(const Lease& lease) { return is_long(lease) ? 0 : lease.ttl; }

// Others can lose leases of the partition all the time: what counts is what was in the way.
static void note_free(LeaseClaim* claim) {
    if (!claim->is_free)
        claim->lost_until = claim->database->lost_in[claim->partition];
    claim->is_free = true;
}

static bool is_covered(const LeaseClaim& claim, int64 now) {
    const Lease& lease = *lease_at(claim.lease);
    return knows_losses(claim.database, claim.lost_until) &&
           (is_long(lease) || covers(claim.database, now + lease.ttl));
}

static bool grant(const LeaseClaim& claim, int64 now) {
    Lease* lease = lease_at(claim.lease);
    lease->token = next_token(claim.database, *node_at(claim.node), lease->role, lease->mode);
    if (lease->token == 0)
        return false;
    lease->since = GetCurrentTimestamp();
    lease->span = lease->ttl;
    lease->expires = lease->pid != 0 ? kNeverExpires : now + lease->ttl;
    put_lease(claim.node, claim.lease);
    if (node_at(root_of(claim.node))->had_tickets != 0)
        note_grant_for_tickets(claim.partition, claim.node);
    return true;
}

Ref in_the_way_of(LeaseDatabase* database, Ref node, LeaseKind wanted, int64 now) {
    return search_the_way(database, node, wanted, now);
}

Ref in_the_way_of_claim(const LeaseClaim& claim, int64 now) { return in_the_way(claim, now); }

bool drop_if_over(LeaseDatabase* database, Ref ref, int64 now) {
    Lease* lease = lease_at(ref);
    if (is_live(*lease, now) || lease->pins > 0)
        return false;
    if (!lease->is_given_back()) {
        count_expiry(*lease);
        lose_lease(database, *lease);
    }
    lease->ended = true;
    return drop_ended(ref);
}

bool drop_ended(Ref ref) {
    if (lease_at(ref)->pins > 0 || has_record(*lease_at(ref)))
        return false;
    drop_lease(ref);
    return true;
}

Ref find_in_the_way(LeaseDatabase* database, const LeaseKey& key, int64 now) {
    auto find_at = [&](size_t length, auto&& find) {
        LeaseKey level = key;
        level.length = length;
        Ref node = find_node(level);
        if (node == 0)
            return Ref{0};
        node_at(node)->users++;
        Ref found = find(database, node, kExclusiveKind, now);
        release_node(node);
        return found;
    };
    Ref found = find_at(key.length, in_the_way_at);
    for (size_t length = key.length; found == 0 && length > key.root;) {
        while (key.bytes[--length] != '/')
            ;
        found = find_at(length, in_the_way_at);
    }
    return found != 0 ? found : find_at(key.length, in_the_way_below);
}

int other_capacity(const LeaseClaim& claim) {
    if (lease_at(claim.lease)->mode != LeaseMode::kPermit || claim.capacity == 0)
        return 0;
    int64 now = monotonic_now();
    for (Ref ref = node_at(claim.node)->leases; ref != 0; ref = lease_at(ref)->next) {
        const Lease& lease = *lease_at(ref);
        int capacity = static_cast<int>(lease.capacity);
        if (lease.mode == LeaseMode::kPermit && capacity != 0 && is_live(lease, now))
            return capacity == claim.capacity ? 0 : capacity; // all of them have the same
    }
    return 0;
}

Decision decide(LeaseClaim* claim, int64 now) {
    LeaseDatabase* database = claim->database;
    if (is_in_grace(database, now))
        return decide_in_grace(*claim, now);
    if (other_capacity(*claim) != 0)
        return {Verdict::kOtherCapacity, 0, now};
    Ref found = in_the_way(*claim, now);
    if (found != 0) {
        claim->is_free = false;
        return decide_in_the_way(found, now);
    }
    note_free(claim);
    if (pg_atomic_read_u32(&database->serves) == 0 || !is_covered(*claim, now) ||
        !grant(*claim, now))
        return {Verdict::kNotDurable, 0, now, wanted_time(*lease_at(claim->lease))};
    return {Verdict::kGranted, 0, 0};
}

Decision make_way_for_reclaim(const LeaseClaim& claim, int64 token, int64 now) {
    for (Ref found; (found = in_the_way(claim, now)) != 0;) {
        Lease* lease = lease_at(found);
        if (lease->token > token || lease->pins > 0)
            return {Verdict::kInTheWay, found, kNeverExpires};
        lease->ended = true;
        if (has_record(*lease))
            return {Verdict::kStaleRecord, found, now};
        drop_lease(found);
    }
    return {Verdict::kGranted, 0, 0};
}

void drop_expired_in(int partition) {
    int64 now = monotonic_now();
    for_each_lease(partition, [now](Ref lease) {
        (void)drop_if_over(database_of(*lease_at(lease)), lease, now);
    });
}

void drop_expired_leases() {
    for (int i = 0; i < kLeasePartitions; i++) {
        LWLockAcquire(partition_lock(i), LW_EXCLUSIVE);
        drop_expired_in(i);
        LWLockRelease(partition_lock(i));
    }
}

} // namespace interlock::lease

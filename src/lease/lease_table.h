// The leases of all databases in shared memory: a forest of keys, and the leases on each key.
//
// A key is found by its hash. It knows its parent (the path without its last level) and its
// children. All keys with the same first level are one tree. They are in one partition, whose lock
// protects the tree, so ancestors and descendants are seen under one lock. A key exists while it
// has leases, children or users.
//
// Nothing here waits or raises an error, except for copies, which need memory. The caller holds the
// partition's lock: exclusively, or shared if the function only reads.
#pragma once

#include "lease/clock.h"
#include "lease/key.h"
#include "lease/role_share.h"

namespace interlock::lease {

constexpr int kLeasePartitions = 64;
constexpr size_t kMaxHolderBytes = 255;

enum class LeaseMode : uint8 { kExclusive, kShared, kPermit };

// What ends a lease: its ttl, the session, or the end of the call that acquires it. A call sets a
// ttl when it has acquired all its leases.
enum class LeaseBond { kTtl, kSession, kCall };

// Which leases exclude each other. A permit counts as shared, except for its capacity.
enum LeaseKind { kExclusiveKind, kSharedKind };
inline LeaseKind kind_of(LeaseMode mode) {
    return mode == LeaseMode::kExclusive ? kExclusiveKind : kSharedKind;
}

// The place of a long lease's durable record (lease/store.h).
struct StorePlace {
    BlockNumber block; // InvalidBlockNumber: it has no record
    OffsetNumber offset;
};
constexpr StorePlace kNoPlace = {InvalidBlockNumber, InvalidOffsetNumber};

// The data of a lease, in memory and in the store.
struct LeaseInfo {
    int64 token;
    int64 expires;
    int64 ttl;
    int64 span; // from the grant or the last renewal to `expires`
    TimestampTz since;
    Oid role;             // the role that acquired it
    uint32 capacity : 30; // of the permits; 0: not known, as after a reclaim
    LeaseMode mode : 2;
};
constexpr int kMaxCapacity = (1 << 30) - 1; // more than the possible number of leases

// Whether a lease stays for a time that was given when it was acquired (at_least), and whether it
// was released meanwhile. After the release it expires at the end of that time, and has no holder.
enum class LeaseStay : uint8 { kNone, kAtLeast, kReleased };

// The unit of the time by which a release shortens a lease that stays. It is rounded so that the
// lease stays longer. No lease is as long as the largest value.
constexpr int64 kReleaseUnit = 10000;
inline uint32 units_of_release(int64 time) {
    return static_cast<uint32>(Min(Max(time, 0) / kReleaseUnit, int64{PG_UINT32_MAX}));
}

struct Lease : LeaseInfo {
    Ref node;
    Ref next;    // of the same key
    int32 pid;   // the session to which it is bound; 0: none
    uint32 pins; // number of open transactions that have asserted it
    StorePlace place;
    bool long_term; // R9: its record protects it, and not the horizon
    bool ended;     // released or lost: excludes others only while it is pinned
    uint8 holder_length;
    LeaseStay stay;
    uint32 pinned_by; // the process that pins it, or a list (lease/pinner.h)
    LeaseCharge charge;
    uint32 release_gives; // of a lease that stays: by how much a release shortens it, in units

    // When a released lease that stays ends.
    int64 stay_until() const { return expires - release_gives * kReleaseUnit; }

    // Moves the expiry to a later time. The end after a release does not move.
    void extend(int64 until) {
        if (stay == LeaseStay::kAtLeast)
            release_gives += units_of_release(until - expires);
        expires = until;
    }

    // Makes the lease stay until that time at least, or until it expires.
    void stay_at_least(int64 until) {
        bool is_later = stay == LeaseStay::kNone || until > stay_until();
        if (is_later)
            release_gives = units_of_release(expires - until);
        stay = LeaseStay::kAtLeast;
    }

    // Copies holder_length bytes, which follow the lease in its piece of memory. Not for a copy of
    // the lease.
    void copy_holder(char* to) const { read_text(this, sizeof(Lease), to, holder_length); }
    bool has_holder(std::string_view holder) const {
        return holder_length == holder.size() &&
               is_text(this, sizeof(Lease), holder.data(), holder.size());
    }

    // Whether its token is no longer valid, although the lease may still exclude others.
    bool is_given_back() const { return ended || stay == LeaseStay::kReleased; }
};

struct LeaseNode {
    uint64 hash;
    Oid database;
    Ref chain; // next key in the same bucket
    Ref parent;
    Ref first_child; // first levels are siblings in their partition
    Ref next_sibling;
    Ref previous_sibling;
    Ref leases;
    uint32 here[2];   // number of leases, by kind
    uint32 below[2];  // the same in all descendants
    uint32 users;     // number of backends that need the key
    int first_waiter; // only in the first level, for the whole tree (lease/queue.h)
    int last_waiter;
    uint32 passed_over;       // last pass through the queue that passed over a waiter for this key
    uint32 passed_below;      // or for a descendant
    bool passed_exclusive[2]; // for these two: one of the waiters was exclusive
    uint16 length : 15;
    uint16 had_tickets : 1;          // only in the first level, for the whole tree (lease/ticket.h)
    char key[FLEXIBLE_ARRAY_MEMBER]; // at the end of the piece of memory, so it must be copied

    void copy_key(char* to) const { read_text(this, offsetof(LeaseNode, key), to, length); }
    bool has_key(const char* bytes) const { // the lengths are equal
        return is_text(this, offsetof(LeaseNode, key), bytes, length);
    }
};

inline Lease* lease_at(Ref ref) { return at<Lease>(ref); }
inline LeaseNode* node_at(Ref ref) { return at<LeaseNode>(ref); }

// The bytes of the node's key. They are copied to `room` if they are not contiguous.
using KeyRoom = char[kMaxLeaseKeyBytes];
inline const char* key_bytes(const LeaseNode& node, KeyRoom& room) {
    if (is_in_one_unit(offsetof(LeaseNode, key), node.length))
        return node.key;
    node.copy_key(room);
    return room;
}
LeaseKey key_of(const LeaseNode& node, KeyRoom& room);

constexpr const char* kLeaseTranche = "pg_interlock leases";
LWLock* partition_lock(int partition);

// Goes through all leases of a partition. 0: there are no more.
Ref first_lease(int partition);
Ref next_lease(Ref lease);

// The link to the first ticket of the partition (lease/ticket.h), for a loop that can drop tickets.
Ref* first_ticket(int partition);

// The next number of a ticket (lease/ticket.h). Numbers grow over restarts too, if the clock does.
int64 next_ticket_number();

// The number of the next pass through a queue of the partition.
uint32 next_look(int partition);

// Returns 0 if the key does not exist.
Ref find_node(const LeaseKey& key);

// Finds or creates the key and its ancestors. It stays until release_node(). Returns 0 if there is
// no room.
Ref use_node(const LeaseKey& key, LeaseAccess access);
void release_node(Ref node);

Ref root_of(Ref node);
bool is_at_or_above(Ref node, Ref other);

// The largest number of units that a lease needs: its own, and those of every level of its key.
uint32 units_of_lease(const LeaseKey& key, size_t holder_length);

// The rest of a lease: its holder, and how it stays.
struct LeaseText {
    const char* holder;
    size_t holder_length;
    LeaseStay stay = LeaseStay::kNone;
    uint32 release_gives = 0;
};

// A new lease that has no key yet. 0: there is no room. The charge is returned when the lease is
// freed.
Ref make_lease(const LeaseInfo& info, const LeaseText& text, const LeaseCharge& charge,
               LeaseAccess access);
void free_lease(Ref lease);

// A lease from before a start, at its key. It is found by its token, or created, whatever its role
// uses already. 0: there is no room.
Ref put_former_lease(const LeaseKey& key, const LeaseInfo& info, const LeaseText& text,
                     StorePlace place);

// Copies in the current memory context, for use after the partition's lock is released.
char* copy_of_key(const LeaseNode& node);
char* copy_of_holder(const Lease& lease);

// put_lease() attaches the lease to the key. The other function detaches and frees it, and the key
// if it is no longer needed.
void put_lease(Ref node, Ref lease);
void drop_lease(Ref lease);

// The lease with that token at the key. 0: there is none.
Ref find_lease(Ref node, int64 token);

// Runs body(Ref lease) for all leases of a partition. body() may drop its lease.
template <typename Body>
void for_each_lease(int partition, Body&& body) {
    Ref next;
    for (Ref lease = first_lease(partition); lease != 0; lease = next) {
        next = next_lease(lease);
        body(lease);
    }
}

// The same for all leases of a database. Locks one partition after the other. body() drops nothing.
template <typename Body>
void for_each_lease_of(Oid database, Body&& body) {
    for (int i = 0; i < kLeasePartitions; i++) {
        LWLockAcquire(partition_lock(i), LW_SHARED);
        for_each_lease(i, [&](Ref ref) {
            const Lease& lease = *lease_at(ref);
            if (node_at(lease.node)->database == database)
                body(lease);
        });
        LWLockRelease(partition_lock(i));
    }
}

size_t lease_table_size();
void attach_lease_table(void* memory, bool found);

} // namespace interlock::lease

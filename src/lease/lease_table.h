// The leases of all databases in shared memory: a forest of keys, and the leases on each.
//
// A key is found by hash, and knows its parent (the path without its last level) and its children.
// All keys with one first level belong to one tree and one partition, whose lock guards the tree:
// ancestors and descendants are seen under one lock. A key is there while it has leases, children
// or users.
//
// Nothing here waits or raises an error, but for copies, which need memory; the caller holds the
// partition's lock exclusively, or shared where a function only looks.
#pragma once

#include "lease/clock.h"
#include "lease/key.h"
#include "lease/role_share.h"

namespace interlock::lease {

constexpr int kLeasePartitions = 64;
constexpr size_t kMaxHolderBytes = 255;

enum class LeaseMode : uint8 { kExclusive, kShared, kPermit };

// What ends a lease: its ttl, the session, or the end of the call that acquires it, which sets a
// ttl once it has all its leases.
enum class LeaseBond { kTtl, kSession, kCall };

// What excludes what: a permit is shared, but for its capacity.
enum LeaseKind { kExclusiveKind, kSharedKind };
inline LeaseKind kind_of(LeaseMode mode) {
    return mode == LeaseMode::kExclusive ? kExclusiveKind : kSharedKind;
}

// Where the durable record of a long lease is (lease/store.h).
struct StorePlace {
    BlockNumber block; // InvalidBlockNumber: there is none
    OffsetNumber offset;
};
constexpr StorePlace kNoPlace = {InvalidBlockNumber, InvalidOffsetNumber};

// The data of a lease, the same in memory and in the store.
struct LeaseInfo {
    int64 token;
    int64 expires;
    int64 ttl;
    int64 span; // from when it was granted or last renewed to `expires`
    TimestampTz since;
    Oid role;             // that acquired it
    uint32 capacity : 30; // of a permit; 0: not known, as after it was reclaimed
    LeaseMode mode : 2;
};
constexpr int kMaxCapacity = (1 << 30) - 1; // more than there can be leases

// Whether a lease stays in the way for a time that was given when it was acquired (at_least), and
// whether it has been released meanwhile: then it expires at the end of that time, and has no
// holder any more.
enum class LeaseStay : uint8 { kNone, kAtLeast, kReleased };

// The end of a lease's time that is given back when it is released: rounded, so that the lease
// stays longer. No lease is as long as the longest.
constexpr int64 kReleaseUnit = 10000;
inline uint32 units_of_release(int64 time) {
    return static_cast<uint32>(Min(Max(time, 0) / kReleaseUnit, int64{PG_UINT32_MAX}));
}

struct Lease : LeaseInfo {
    Ref node;
    Ref next;    // of the same key
    int32 pid;   // of the session it is bound to; 0: none
    uint32 pins; // open transactions that have asserted it
    StorePlace place;
    bool long_term; // R9: its record stands for it, and not the horizon
    bool ended;     // given back or lost: in the way only while it is pinned
    uint8 holder_length;
    LeaseStay stay;
    uint32 pinned_by; // the process that pins it, or a list of several (lease/pinner.h)
    LeaseCharge charge;
    uint32 release_gives; // of one that stays: how much of its time a release gives back, in units

    // When a lease that stays may end.
    int64 stay_until() const { return expires - release_gives * kReleaseUnit; }

    // Moves the expiry to a later time. A lease that stays may end when it might before.
    void extend(int64 until) {
        if (stay == LeaseStay::kAtLeast)
            release_gives += units_of_release(until - expires);
        expires = until;
    }

    // It stays until then at least, as long as it has not expired.
    void stay_at_least(int64 until) {
        bool is_later = stay == LeaseStay::kNone || until > stay_until();
        if (is_later)
            release_gives = units_of_release(expires - until);
        stay = LeaseStay::kAtLeast;
    }

    // Of holder_length bytes, behind the lease in its piece of memory: not of a copy of the lease.
    void copy_holder(char* to) const { read_text(this, sizeof(Lease), to, holder_length); }
    bool has_holder(std::string_view holder) const {
        return holder_length == holder.size() &&
               is_text(this, sizeof(Lease), holder.data(), holder.size());
    }

    // Whether its token is worth nothing any more, although it may be in the way.
    bool is_given_back() const { return ended || stay == LeaseStay::kReleased; }
};

struct LeaseNode {
    uint64 hash;
    Oid database;
    Ref chain; // next with the same bucket
    Ref parent;
    Ref first_child; // siblings of a first level hang in their partition
    Ref next_sibling;
    Ref previous_sibling;
    Ref leases;
    uint32 here[2];   // leases, by kind
    uint32 below[2];  // in all descendants
    uint32 users;     // backends that need the key to stay
    int first_waiter; // of the whole tree, in the first level (lease/queue.h)
    int last_waiter;
    uint32 passed_over;       // the last look at the queue in which a waiter for this key stayed
    uint32 passed_below;      // or one for a descendant
    bool passed_exclusive[2]; // of these two: whether one of them was exclusive
    uint16 length : 15;
    uint16 had_tickets : 1;          // of the whole tree, in the first level (lease/ticket.h)
    char key[FLEXIBLE_ARRAY_MEMBER]; // at the end of the piece of memory: to be copied

    void copy_key(char* to) const { read_text(this, offsetof(LeaseNode, key), to, length); }
    bool has_key(const char* bytes) const { // of the same length
        return is_text(this, offsetof(LeaseNode, key), bytes, length);
    }
};

inline Lease* lease_at(Ref ref) { return at<Lease>(ref); }
inline LeaseNode* node_at(Ref ref) { return at<LeaseNode>(ref); }

// The bytes of the node's key, in `room` if they are not in one place.
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

// All leases of a partition, one after the other; 0: there are no more.
Ref first_lease(int partition);
Ref next_lease(Ref lease);

// The link to the first ticket of the partition (lease/ticket.h), for a walk that can drop tickets.
Ref* first_ticket(int partition);

// The next number of a ticket (lease/ticket.h). They go on over restarts, as long as the clock
// does.
int64 next_ticket_number();

// The number of the next look at a queue of the partition.
uint32 next_look(int partition);

// 0: it is not there.
Ref find_node(const LeaseKey& key);

// Finds or makes the key and its ancestors; 0: there is no room. It stays until release_node.
Ref use_node(const LeaseKey& key, LeaseAccess access);
void release_node(Ref node);

Ref root_of(Ref node);
bool is_at_or_above(Ref node, Ref other);

// The units of memory that a lease needs at most: its own, and those of every level of its key.
uint32 units_of_lease(const LeaseKey& key, size_t holder_length);

// What a lease has besides: its holder, and how it stays.
struct LeaseText {
    const char* holder;
    size_t holder_length;
    LeaseStay stay = LeaseStay::kNone;
    uint32 release_gives = 0;
};

// A new lease that belongs to no key yet; 0: there is no room. The charge is given back when it is
// freed.
Ref make_lease(const LeaseInfo& info, const LeaseText& text, const LeaseCharge& charge,
               LeaseAccess access);
void free_lease(Ref lease);

// A lease from before a start, at its key: found by its token, or made anew, whatever its role uses
// already. 0: there is no room.
Ref put_former_lease(const LeaseKey& key, const LeaseInfo& info, const LeaseText& text,
                     StorePlace place);

// Copies for when the partition's lock is released, in the current memory context.
char* copy_of_key(const LeaseNode& node);
char* copy_of_holder(const Lease& lease);

// Attaches it to the key; or detaches and frees it, and the key with it if it is no longer needed.
void put_lease(Ref node, Ref lease);
void drop_lease(Ref lease);

// The lease with that token at the key; 0: there is none.
Ref find_lease(Ref node, int64 token);

// Runs body(Ref lease) for all leases of a partition; it may drop the one it is given.
template <typename Body>
void for_each_lease(int partition, Body&& body) {
    Ref next;
    for (Ref lease = first_lease(partition); lease != 0; lease = next) {
        next = next_lease(lease);
        body(lease);
    }
}

size_t lease_table_size();
void attach_lease_table(void* memory, bool found);

} // namespace interlock::lease

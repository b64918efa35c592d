#include "lease/lease_table.h"

#include "server/siphash.h"

namespace interlock::lease {

namespace {

// Keys of several partitions share a bucket, which has a lock of its own for the chain.
struct Bucket {
    slock_t lock;
    Ref first;
};

// On a cache line of its own: it is written with every key that comes or goes.
struct alignas(PG_CACHE_LINE_SIZE) Partition {
    Ref first_root;
    Ref first_ticket;
    uint32 looks;
};

struct LeaseTable {
    SipKey seed; // of hashes
    pg_atomic_uint64 next_ticket;
    Partition partitions[kLeasePartitions];
    Bucket buckets[FLEXIBLE_ARRAY_MEMBER];
};

} // namespace

static LeaseTable* table = nullptr;
static SipKey seed = {}; // a copy, which is there without shared memory, too
static LWLockPadded* locks = nullptr;

static uint32 bucket_count() { return pg_nextpower2_32(Max(max_leases, 1024)); }

static Bucket* bucket_of(uint64 hash) { return &table->buckets[hash & (bucket_count() - 1)]; }

// The random seed prevents clients from choosing many keys of one bucket, which would slow down all
// look-ups there.
static uint64 hash_of(Oid database, const char* bytes, size_t length) {
    SipHash hash(seed);
    hash.add(database);
    return hash.finish(bytes, length);
}

static uint64 hash_of_prefix(const LeaseKey& key, size_t length) {
    return length == key.root ? key.root_hash : hash_of(key.database, key.bytes, length);
}

static int partition_of(uint64 root_hash) {
    return static_cast<int>(root_hash >> 32) & (kLeasePartitions - 1);
}

// --- Keys ----------------------------------------------------------------------------------------

static bool is_key(const LeaseNode& node, uint64 hash, const LeaseKey& key, size_t length) {
    return node.hash == hash && node.database == key.database && node.length == length &&
           node.has_key(key.bytes);
}

static Ref find_prefix(const LeaseKey& key, size_t length, uint64 hash) {
    Bucket* bucket = bucket_of(hash);
    SpinLockAcquire(&bucket->lock);
    Ref ref = bucket->first;
    while (ref != 0 && !is_key(*node_at(ref), hash, key, length))
        ref = node_at(ref)->chain;
    SpinLockRelease(&bucket->lock);
    return ref;
}

static void chain_node(Ref ref) {
    Bucket* bucket = bucket_of(node_at(ref)->hash);
    SpinLockAcquire(&bucket->lock);
    node_at(ref)->chain = bucket->first;
    bucket->first = ref;
    SpinLockRelease(&bucket->lock);
}

static void unchain_node(Ref ref) {
    Bucket* bucket = bucket_of(node_at(ref)->hash);
    SpinLockAcquire(&bucket->lock);
    Ref* link = &bucket->first;
    while (*link != ref)
        link = &node_at(*link)->chain;
    *link = node_at(ref)->chain;
    SpinLockRelease(&bucket->lock);
}

static Ref* first_sibling(const LeaseNode& node) {
    return node.parent != 0 ? &node_at(node.parent)->first_child
                            : &table->partitions[partition_of(node.hash)].first_root;
}

static void hang_node(Ref ref) {
    LeaseNode* node = node_at(ref);
    Ref* first = first_sibling(*node);
    node->next_sibling = *first;
    node->previous_sibling = 0;
    if (*first != 0)
        node_at(*first)->previous_sibling = ref;
    *first = ref;
}

static void unhang_node(Ref ref) {
    LeaseNode* node = node_at(ref);
    if (node->next_sibling != 0)
        node_at(node->next_sibling)->previous_sibling = node->previous_sibling;
    if (node->previous_sibling != 0)
        node_at(node->previous_sibling)->next_sibling = node->next_sibling;
    else
        *first_sibling(*node) = node->next_sibling;
}

static constexpr size_t size_of_node(size_t length) { return offsetof(LeaseNode, key) + length; }

static Ref make_node(const LeaseKey& key, size_t length, uint64 hash, Ref parent,
                     LeaseAccess access) {
    Ref ref = allocate_piece(size_of_node(length), access);
    if (ref == 0)
        return 0;
    LeaseNode* node = node_at(ref);
    memset(node, 0, offsetof(LeaseNode, key));
    node->hash = hash;
    node->database = key.database;
    node->parent = parent;
    node->length = length & PG_INT16_MAX;
    write_text(node, offsetof(LeaseNode, key), key.bytes, length);
    hang_node(ref);
    chain_node(ref);
    return ref;
}

static void drop_unused(Ref ref) {
    while (ref != 0) {
        LeaseNode* node = node_at(ref);
        if (node->leases != 0 || node->first_child != 0 || node->users > 0)
            return;
        Ref parent = node->parent;
        unhang_node(ref);
        unchain_node(ref);
        free_piece(ref, size_of_node(node->length));
        ref = parent;
    }
}

// Counts the lease at its key and in the descendants of its ancestors.
static void count_lease(Ref ref, LeaseKind kind, int change) {
    node_at(ref)->here[kind] += change;
    for (ref = node_at(ref)->parent; ref != 0; ref = node_at(ref)->parent)
        node_at(ref)->below[kind] += change;
}

// Every key before its descendants.
static Ref next_node(Ref ref) {
    if (node_at(ref)->first_child != 0)
        return node_at(ref)->first_child;
    while (ref != 0 && node_at(ref)->next_sibling == 0)
        ref = node_at(ref)->parent;
    return ref == 0 ? 0 : node_at(ref)->next_sibling;
}

// The first lease at the key or one after it.
static Ref lease_from(Ref node) {
    while (node != 0 && node_at(node)->leases == 0)
        node = next_node(node);
    return node == 0 ? 0 : node_at(node)->leases;
}

LeaseKey lease_key(Oid database, const char* bytes, size_t length) {
    size_t root = end_of_level(bytes, length, 0);
    uint64 hash = hash_of(database, bytes, root);
    return {database, bytes, length, root, hash, partition_of(hash)};
}

LeaseKey key_of(const LeaseNode& node, KeyRoom& room) {
    return lease_key(node.database, key_bytes(node, room), node.length);
}

LWLock* partition_lock(int partition) { return &locks[partition].lock; }

Ref first_lease(int partition) { return lease_from(table->partitions[partition].first_root); }

Ref next_lease(Ref lease) {
    Ref next = lease_at(lease)->next;
    return next != 0 ? next : lease_from(next_node(lease_at(lease)->node));
}

Ref* first_ticket(int partition) { return &table->partitions[partition].first_ticket; }

int64 next_ticket_number() {
    return static_cast<int64>(pg_atomic_fetch_add_u64(&table->next_ticket, 1));
}

uint32 next_look(int partition) { return ++table->partitions[partition].looks; }

Ref find_node(const LeaseKey& key) {
    return find_prefix(key, key.length, hash_of_prefix(key, key.length));
}

Ref use_node(const LeaseKey& key, LeaseAccess access) {
    Ref parent = 0;
    for (size_t end = 0; end < key.length;) {
        end = end_of_level(key.bytes, key.length, end + 1);
        uint64 hash = hash_of_prefix(key, end);
        Ref node = find_prefix(key, end, hash);
        if (node == 0)
            node = make_node(key, end, hash, parent, access);
        if (node == 0) {
            drop_unused(parent);
            return 0;
        }
        parent = node;
    }
    node_at(parent)->users++;
    return parent;
}

void release_node(Ref node) {
    node_at(node)->users--;
    drop_unused(node);
}

Ref root_of(Ref node) {
    while (node_at(node)->parent != 0)
        node = node_at(node)->parent;
    return node;
}

bool is_at_or_above(Ref node, Ref other) {
    while (other != 0 && other != node)
        other = node_at(other)->parent;
    return other != 0;
}

uint32 units_of_lease(const LeaseKey& key, size_t holder_length) {
    uint32 units = units_of_piece(sizeof(Lease) + holder_length);
    for (size_t end = 0; end < key.length;) {
        end = end == 0 ? key.root : end_of_level(key.bytes, key.length, end + 1);
        units += units_of_piece(size_of_node(end));
    }
    return units;
}

Ref make_lease(const LeaseInfo& info, const LeaseText& text, const LeaseCharge& charge,
               LeaseAccess access) {
    Ref ref = allocate_piece(sizeof(Lease) + text.holder_length, access);
    if (ref == 0)
        return 0;
    auto* lease = lease_at(ref);
    *lease = {};
    static_cast<LeaseInfo&>(*lease) = info;
    lease->place = kNoPlace;
    lease->charge = charge;
    lease->holder_length = static_cast<uint8>(text.holder_length);
    lease->stay = text.stay;
    lease->release_gives = text.release_gives;
    write_text(lease, sizeof(Lease), text.holder, text.holder_length);
    return ref;
}

void free_lease(Ref lease) {
    discharge_lease(lease_at(lease)->charge);
    free_piece(lease, sizeof(Lease) + lease_at(lease)->holder_length);
}

char* copy_of_key(const LeaseNode& node) {
    char* key = static_cast<char*>(palloc0(node.length + 1));
    node.copy_key(key);
    return key;
}

char* copy_of_holder(const Lease& lease) {
    char* holder = static_cast<char*>(palloc0(lease.holder_length + 1));
    lease.copy_holder(holder);
    return holder;
}

void put_lease(Ref node, Ref lease) {
    lease_at(lease)->node = node;
    lease_at(lease)->next = node_at(node)->leases;
    node_at(node)->leases = lease;
    count_lease(node, kind_of(lease_at(lease)->mode), 1);
}

void drop_lease(Ref lease) {
    Ref node = lease_at(lease)->node;
    Ref* link = &node_at(node)->leases;
    while (*link != lease)
        link = &lease_at(*link)->next;
    *link = lease_at(lease)->next;
    count_lease(node, kind_of(lease_at(lease)->mode), -1);
    free_lease(lease);
    drop_unused(node);
}

Ref find_lease(Ref node, int64 token) {
    Ref lease = node == 0 ? 0 : node_at(node)->leases;
    while (lease != 0 && lease_at(lease)->token != token)
        lease = lease_at(lease)->next;
    return lease;
}

Ref put_former_lease(const LeaseKey& key, const LeaseInfo& info, const LeaseText& text,
                     StorePlace place) {
    Ref node = use_node(key, LeaseAccess::kPrivileged);
    if (node == 0)
        return 0;
    Ref lease = find_lease(node, info.token);
    if (lease == 0) {
        LeaseCharge charge;
        (void)charge_lease(info.role, units_of_lease(key, text.holder_length),
                           LeaseAccess::kPrivileged, &charge);
        lease = make_lease(info, text, charge, LeaseAccess::kPrivileged);
        if (lease != 0)
            put_lease(node, lease);
        else
            discharge_lease(charge);
    }
    if (lease != 0)
        lease_at(lease)->place = place;
    release_node(node);
    return lease;
}

size_t lease_table_size() {
    return offsetof(LeaseTable, buckets) + sizeof(Bucket) * bucket_count();
}

void attach_lease_table(void* memory, bool found) {
    table = static_cast<LeaseTable*>(memory);
    locks = GetNamedLWLockTranche(kLeaseTranche);
    if (found) {
        seed = table->seed;
        return;
    }
    memset(table, 0, offsetof(LeaseTable, buckets));
    if (!pg_strong_random(&seed, sizeof(seed)))
        ereport(FATAL,
                (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate random numbers")));
    table->seed = seed;
    pg_atomic_init_u64(&table->next_ticket, static_cast<uint64>(GetCurrentTimestamp()));
    for (uint32 i = 0; i < bucket_count(); i++) {
        SpinLockInit(&table->buckets[i].lock);
        table->buckets[i].first = 0;
    }
}

} // namespace interlock::lease

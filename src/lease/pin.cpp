// What ends with the transaction (assertions) or with the session (leases bound to it).

#include "lease/lease.h"
#include "lease/pinner.h"
#include "lease/role.h"
#include "server/transaction_list.h"

namespace interlock {

namespace {

// While it is pinned, the lease stays where it is.
struct Pin {
    Ref lease;
    Ref root; // of its tree
    int partition;
    int64 token;
};

TransactionList<Pin> pins = {};

struct BoundLease {
    int64 token; // hash key
    uint64 root_hash;
    uint16 length;
    char key[kMaxLeaseKeyBytes];
};

HTAB* bound_leases = nullptr;
int64 spare_count = 0; // free entries: their tokens are 0, -1, -2 and so on

// By trees, so that the queue of each is served once. find_lease(), and a drop, meet the newest of
// a key first: none is looked for behind those that end later.
template <typename Tree>
int compare_ends(Tree left, int64 left_token, Tree right, int64 right_token) {
    if (left != right)
        return left < right ? -1 : 1;
    return left_token > right_token ? -1 : left_token < right_token ? 1 : 0;
}

int order_of_unpins(const void* left, const void* right) {
    const auto& a = *static_cast<const Pin*>(left);
    const auto& b = *static_cast<const Pin*>(right);
    return compare_ends(a.root, a.token, b.root, b.token);
}

void unpin(const Pin& pin, bool is_last_of_tree) {
    LWLockAcquire(partition_lock(pin.partition), LW_EXCLUSIVE);
    remove_pinner(lease_at(pin.lease));
    if (is_last_of_tree)
        drop_if_ended_and_serve(pin.lease);
    else if (lease_at(pin.lease)->ended)
        drop_ended(pin.lease);
    LWLockRelease(partition_lock(pin.partition));
}

void unpin_all(XactEvent event, void*) {
    if (event == XACT_EVENT_PRE_PREPARE && pins.count > 0)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("cannot prepare a transaction that has asserted a lease")));
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT &&
        event != XACT_EVENT_PARALLEL_COMMIT && event != XACT_EVENT_PARALLEL_ABORT)
        return;
    // The transaction is committed and visible, or rolled back.
    if (pins.count > 1)
        qsort(pins.items, pins.count, sizeof(Pin), order_of_unpins);
    for (int i = 0; i < pins.count; i++)
        unpin(pins[i], i + 1 == pins.count || pins[i].root != pins[i + 1].root);
    pins.forget();
}

struct PinAttempt {
    bool held;
    LeaseRoom room; // for the list of the processes that pin the lease
    Oid role;       // whose room that is
};

PinAttempt try_to_pin(const LeaseKey& key, int64 token, LeaseAccess access) {
    bool was_pinned = has_pinned_token(token);
    PinAttempt attempt = {false, LeaseRoom::kYes, InvalidOid};
    with_own_lease(key, token, was_pinned ? LW_SHARED : LW_EXCLUSIVE, [&](Ref ref) {
        Lease* lease = lease_at(ref);
        attempt.held =
            ref != 0 && !lease->is_given_back() && (was_pinned || is_live(*lease, monotonic_now()));
        if (!attempt.held || was_pinned)
            return;
        if (pins.count == 0)
            this_waiter()->pinning_since = GetCurrentTransactionStartTimestamp();
        attempt.role = lease->role;
        attempt.room = add_pinner(lease, access);
        if (attempt.room == LeaseRoom::kYes)
            pins.add({ref, root_of(lease->node), key.partition, token});
    });
    return attempt;
}

LeaseKey key_of(const BoundLease& bound) {
    return lease_key(MyDatabaseId, bound.key, bound.length);
}

// next: the one that ends after it; null: there is none, or of whatever tree.
void end_bound_lease(LeaseDatabase* database, const BoundLease& bound, const BoundLease* next) {
    LeaseKey key = key_of(bound);
    with_lease(key, bound.token, [database](Ref lease) {
        if (lease != 0 && !lease_at(lease)->ended)
            end_lease_without_serving(database, lease, LeaseEnd::kLost);
    });
    if (next == nullptr || !is_same_tree(key, key_of(*next)))
        serve_tree_of(key);
}

int order_of_ends(const void* left, const void* right) {
    const auto& a = **static_cast<BoundLease* const*>(left);
    const auto& b = **static_cast<BoundLease* const*>(right);
    return compare_ends(a.root_hash, a.token, b.root_hash, b.token);
}

void end_bound_leases(int, Datum) {
    LeaseDatabase* database = find_or_make_database(MyDatabaseId);
    int64 count = 0;
    auto** all = static_cast<BoundLease**>(
        malloc(sizeof(BoundLease*) * (hash_get_num_entries(bound_leases) + 1)));
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, bound_leases);
    while (auto* bound = static_cast<BoundLease*>(hash_seq_search(&scan)))
        if (all != nullptr)
            all[count++] = bound;
        else // as the session ends in any case
            end_bound_lease(database, *bound, nullptr);
    if (count > 0)
        qsort(all, count, sizeof(BoundLease*), order_of_ends);
    for (int64 i = 0; i < count; i++)
        end_bound_lease(database, *all[i], i + 1 < count ? all[i + 1] : nullptr);
    free(all);
}

} // namespace

bool pin_lease(const LeaseKey& key, int64 token) {
    PreventCommandIfParallelMode("interlock.assert_lease()"); // a worker's ends before the query
    static bool registered = false;
    if (!registered)
        RegisterXactCallback(unpin_all, nullptr);
    registered = true;
    pins.need_room(); // else the pin could be lost by an error
    PinAttempt attempt = try_to_pin(key, token, LeaseAccess::kOrdinary);
    if (attempt.room != LeaseRoom::kYes && superuser_arg(attempt.role))
        attempt = try_to_pin(key, token, LeaseAccess::kPrivileged);
    if (attempt.room != LeaseRoom::kYes)
        raise_no_room(attempt.room, attempt.role);
    return attempt.held;
}

bool has_pinned_token(int64 token) {
    for (int i = pins.count - 1; i >= 0; i--)
        if (pins[i].token == token)
            return true;
    return false;
}

bool has_pins() { return pins.count > 0; }

bool has_pinned(const char* key, size_t length) {
    for (int i = pins.count - 1; i >= 0; i--) {
        const Lease& lease = *lease_at(pins[i].lease);
        const LeaseNode& node = *node_at(lease.node);
        if (lease.mode == LeaseMode::kExclusive && !lease.is_given_back() &&
            node.length <= length && node.has_key(key) &&
            (node.length == length || key[node.length] == '/'))
            return true;
    }
    return false;
}

// With free entries in the table, so that binding a lease cannot fail once it is granted.
void prepare_to_bind(int count) {
    PreventCommandIfParallelMode("interlock.acquire_lease()"); // a worker's session ends at once
    if (bound_leases == nullptr) {
        HASHCTL control = {};
        control.keysize = sizeof(int64);
        control.entrysize = sizeof(BoundLease);
        control.hcxt = TopMemoryContext;
        bound_leases = hash_create("pg_interlock bound leases", 16, &control,
                                   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
        before_shmem_exit(end_bound_leases, 0);
    }
    for (; spare_count < count; spare_count++) {
        int64 token = -spare_count;
        bool found;
        auto* spare =
            static_cast<BoundLease*>(hash_search(bound_leases, &token, HASH_ENTER, &found));
        spare->length = 0;
    }
}

void bind_lease(const LeaseKey& key, int64 token) {
    int64 spare = -(--spare_count);
    hash_search(bound_leases, &spare, HASH_REMOVE, nullptr);
    bool found;
    auto* bound = static_cast<BoundLease*>(hash_search(bound_leases, &token, HASH_ENTER, &found));
    bound->root_hash = key.root_hash;
    bound->length = static_cast<uint16>(key.length);
    memcpy(bound->key, key.bytes, key.length);
}

void forget_bound_lease(int64 token) {
    if (bound_leases != nullptr)
        hash_search(bound_leases, &token, HASH_REMOVE, nullptr);
}

} // namespace interlock

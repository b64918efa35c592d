// What ends with the transaction (assertions) or with the session (leases bound to it).

#include "lease/lease.h"
#include "lease/pinner.h"
#include "lease/token_role.h"
#include "server/transaction_list.h"

namespace interlock::lease {

namespace {

// While it is pinned, the lease stays where it is.
struct Pin {
    Ref lease;
    int partition;
    int64 token;
};

} // namespace

static TransactionList<Pin> pins = {};

namespace {

struct BoundLease {
    int64 token; // hash key
    uint16 length;
    char key[kMaxLeaseKeyBytes];
};

} // namespace

static HTAB* bound_leases = nullptr;
static int64 spare_count = 0; // free entries: their tokens are 0, -1, -2 and so on

static void unpin(const Pin& pin) {
    LWLockAcquire(partition_lock(pin.partition), LW_EXCLUSIVE);
    remove_pinner(lease_at(pin.lease));
    drop_if_ended_and_serve(pin.lease);
    LWLockRelease(partition_lock(pin.partition));
}

static void unpin_all(XactEvent event, void*) {
    if (event == XACT_EVENT_PRE_PREPARE && pins.count > 0)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("cannot prepare a transaction that has asserted a lease")));
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT &&
        event != XACT_EVENT_PARALLEL_COMMIT && event != XACT_EVENT_PARALLEL_ABORT)
        return;
    // The transaction is committed and visible, or rolled back. The newest lease of a key is the
    // first one that drop_lease() meets.
    for (int i = pins.count - 1; i >= 0; i--)
        unpin(pins[i]);
    pins.forget();
}

namespace {

struct PinAttempt {
    bool held;
    LeaseRoom room; // for the list of the processes that pin the lease
    Oid role;       // whose room that is
};

} // namespace

static PinAttempt try_to_pin(const LeaseKey& key, int64 token, LeaseAccess access) {
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
            pins.add({ref, key.partition, token});
    });
    return attempt;
}

static void end_bound_lease(LeaseDatabase* database, const BoundLease& bound) {
    (void)end_lease_of(database, lease_key(MyDatabaseId, bound.key, bound.length), bound.token,
                       LeaseEnd::kLost);
}

static int newest_first(const void* left, const void* right) {
    int64 a = (*static_cast<BoundLease* const*>(left))->token;
    int64 b = (*static_cast<BoundLease* const*>(right))->token;
    return (a < b) - (a > b);
}

static void end_bound_leases(int, Datum) {
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
            end_bound_lease(database, *bound);
    if (count > 0)
        qsort(all, count, sizeof(BoundLease*), newest_first);
    for (int64 i = 0; i < count; i++)
        end_bound_lease(database, *all[i]);
    free(all);
}

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
    bound->length = static_cast<uint16>(key.length);
    memcpy(bound->key, key.bytes, key.length);
}

void forget_bound_lease(int64 token) {
    if (bound_leases != nullptr)
        hash_search(bound_leases, &token, HASH_REMOVE, nullptr);
}

} // namespace interlock::lease

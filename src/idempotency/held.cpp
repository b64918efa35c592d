// What view held shows of committed claims: those that are pending, until their deadline.
//
// The caller has not named the table, so no lock is waited for and no code of others runs.

#include "idempotency/grant.h"
#include "idempotency/row.h"
#include "idempotency/wait.h"
#include "server/relation_lock.h"
#include "server/result_row.h"
#include "table/peek.h"

namespace interlock::idempotency {

namespace {

struct Listing {
    ReturnSetInfo* output;
    HTAB* waiters; // null: not known
    bool sees_all;
    TimestampTz now;
};

// How many processes wait for a key.
struct Waiting {
    uint64 hash; // hash key
    int64 count;
};

} // namespace

static bool list_claims(Listing* listing, Oid keys);
static void put_unseen(const Listing& listing, Oid keys, const char* why);
static HTAB* count_waiters();

extern "C" {
PG_FUNCTION_INFO_V1(list_held_claims);

Datum list_held_claims(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    Oid keys = own_table(kIdempotencyKeys.name);
    Listing listing = {reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo), count_waiters(),
                       has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
                           pg_class_aclcheck(keys, GetUserId(), ACL_SELECT) == ACLCHECK_OK,
                       GetCurrentTimestamp()};
    Unseen unseen = look_and_release([&] { return list_claims(&listing, keys); });
    if (unseen.why != nullptr)
        put_unseen(listing, keys, unseen.why);
    return 0;
}
}

static HTAB* count_waiters() {
    HASHCTL control = {};
    control.keysize = sizeof(uint64);
    control.entrysize = sizeof(Waiting);
    control.hcxt = CurrentMemoryContext;
    HTAB* waiters = hash_create("interlock waiters for claims", 64, &control,
                                HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    bool is_known = for_each_claim_waiter([&](const ClaimWaiter& waiter) {
        bool found;
        auto* entry = static_cast<Waiting*>(hash_search(waiters, &waiter.hash, HASH_ENTER, &found));
        entry->count = found ? entry->count + 1 : 1;
    });
    return is_known ? waiters : nullptr;
}

static int64 waiters_for(const Listing& listing, const IdempotencyKey& key) {
    uint64 hash = hash_idempotency_key(key);
    auto* entry = static_cast<Waiting*>(hash_search(listing.waiters, &hash, HASH_FIND, nullptr));
    return entry != nullptr ? entry->count : 0;
}

// name, rel, since, expires_at, waiters, note
static void put_claim(const Listing& listing, const IdempotencyKey& key, TimestampTz since,
                      TimestampTz deadline) {
    Datum values[6] = {CStringGetTextDatum(claim_name(key)), 0, TimestampTzGetDatum(since),
                       TimestampTzGetDatum(deadline)};
    bool nulls[6] = {false, true, false, false, listing.waiters == nullptr, true};
    if (!nulls[4])
        values[4] = Int64GetDatum(waiters_for(listing, key));
    add_result_row(listing.output, values, nulls);
}

static void put_unseen(const Listing& listing, Oid keys, const char* why) {
    Datum values[6] = {0, ObjectIdGetDatum(keys)};
    bool nulls[6] = {true, false, true, true, true, false};
    values[5] = CStringGetTextDatum(psprintf("not looked at: %s", why));
    add_result_row(listing.output, values, nulls);
}

namespace {

// The columns that are read, by name: an owner may have dropped and added some.
struct ClaimColumns {
    AttrNumber scope, key, status, claimed_at, deadline, expires_at;
};

} // namespace

static AttrNumber column_of(TupleDesc columns, AttrNumber column) {
    const MadeColumn& made = kIdempotencyKeys.columns[column - 1];
    AttrNumber found = find_attribute(columns, made.name);
    return found != InvalidAttrNumber && TupleDescAttr(columns, found - 1)->atttypid == made.type
               ? found
               : InvalidAttrNumber;
}

// False: one is gone.
static bool find_columns(TupleDesc columns, ClaimColumns* found) {
    *found = {column_of(columns, kScope),    column_of(columns, kKey),
              column_of(columns, kStatus),   column_of(columns, kClaimedAt),
              column_of(columns, kDeadline), column_of(columns, kExpiresAt)};
    return found->scope != 0 && found->key != 0 && found->status != 0 && found->claimed_at != 0 &&
           found->deadline != 0 && found->expires_at != 0;
}

static bool may_read_keys(Oid keys, const ClaimColumns& at) {
    Oid user = GetUserId();
    return pg_attribute_aclcheck(keys, at.scope, user, ACL_SELECT) == ACLCHECK_OK &&
           pg_attribute_aclcheck(keys, at.key, user, ACL_SELECT) == ACLCHECK_OK;
}

static TimestampTz time_in(TupleTableSlot* slot, AttrNumber column) {
    bool is_null;
    Datum value = slot_getattr(slot, column, &is_null);
    return is_null ? 0 : DatumGetTimestampTz(value);
}

static void list_row(Listing* listing, const ClaimColumns& at, TupleTableSlot* slot) {
    NullableDatum status;
    status.value = slot_getattr(slot, at.status, &status.isnull);
    TimestampTz deadline = time_in(slot, at.deadline);
    if (!is_text(status, "pending") || deadline <= listing->now ||
        time_in(slot, at.expires_at) <= listing->now)
        return;
    bool is_null;
    IdempotencyKey key = {slot_getattr(slot, at.scope, &is_null),
                          slot_getattr(slot, at.key, &is_null)};
    if (is_claimed_here(key)) // and listed with the claims that are not committed
        return;
    if (listing->sees_all || may_use_scope(key.scope))
        put_claim(*listing, key, time_in(slot, at.claimed_at), deadline);
}

static void scan_claims(Listing* listing, Relation rel, const ClaimColumns& at) {
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "listed claim", ALLOCSET_DEFAULT_SIZES);
    TupleTableSlot* slot = table_slot_create(rel, nullptr);
    TableScanDesc scan = begin_table_scan(rel, GetActiveSnapshot());
    while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
        CHECK_FOR_INTERRUPTS();
        in_context(memory, [&] {
            list_row(listing, at, slot);
            return 0;
        });
        MemoryContextReset(memory);
    }
    table_endscan(scan);
    ExecDropSingleTupleTableSlot(slot);
    MemoryContextDelete(memory);
}

// False when another transaction has locked the table, or that of the grants.
static bool list_claims(Listing* listing, Oid keys) {
    if (!lock_without_waiting(keys, AccessShareLock) ||
        (!listing->sees_all &&
         !lock_without_waiting(own_table("idempotency_grant"), AccessShareLock)))
        return false;
    Relation rel = try_relation_open(keys, NoLock);
    ClaimColumns at;
    if (rel == nullptr)
        return true;
    if (find_columns(RelationGetDescr(rel), &at)) {
        listing->sees_all = listing->sees_all || may_read_keys(keys, at);
        scan_claims(listing, rel, at);
    } else {
        put_unseen(*listing, keys, "A column is gone or has another type.");
    }
    relation_close(rel, NoLock);
    return true;
}

} // namespace interlock::idempotency

// What view held shows of the keys of one space.

#include "key_lock/list.h"
#include "key_lock/mode.h"
#include "server/arguments.h"
#include "server/lock_status.h"
#include "server/result_row.h"

namespace interlock::key_lock {

namespace {

// The sessions that wait for a lock, by mode.
struct Waiters {
    LOCKTAG tag; // hash key
    int count[MaxLockMode + 1];
};

struct Listing {
    ReturnSetInfo* output;
    LockStatus locks;
    HTAB* waiters;
    ShownNames names;
};

} // namespace

static HTAB* count_waiters(const LockStatus& locks);
static void put_holds(Listing* listing, const LockInstanceData& lock);

extern "C" {
PG_FUNCTION_INFO_V1(list_held_keys);

// list_held_keys(kind): key, applock or idempotency.
Datum list_held_keys(PG_FUNCTION_ARGS) {
    constexpr const char* kinds[kKeySpaces] = {"key", "applock", "idempotency", "applock"};
    const char* kind = Arguments(fcinfo).string(0, "kind");
    InitMaterializedSRF(fcinfo, 0);
    LockStatus locks = lock_status();
    Listing listing = {
        reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo), locks, count_waiters(locks), {}};
    for (const LockInstanceData& lock : locks)
        if (is_key_tag(lock.locktag) && lock.holdMask != 0 &&
            strcmp(kinds[static_cast<int>(space_of(lock.locktag))], kind) == 0)
            put_holds(&listing, lock);
    return 0;
}
}

static HTAB* count_waiters(const LockStatus& locks) {
    HASHCTL control = {};
    control.keysize = sizeof(LOCKTAG);
    control.entrysize = sizeof(Waiters);
    control.hcxt = CurrentMemoryContext;
    HTAB* waiters = hash_create("interlock waiters for keys", 64, &control,
                                HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    for (const LockInstanceData& lock : locks) {
        if (lock.waitLockMode == NoLock || !is_key_tag(lock.locktag))
            continue;
        bool found;
        auto* entry =
            static_cast<Waiters*>(hash_search(waiters, &lock.locktag, HASH_ENTER, &found));
        if (!found)
            memset(entry->count, 0, sizeof(entry->count));
        entry->count[lock.waitLockMode]++;
    }
    return waiters;
}

// Those that a holder of the mode keeps waiting.
static int64 waiters_for(const Listing& listing, const LOCKTAG& tag, LOCKMODE mode) {
    auto* entry = static_cast<Waiters*>(hash_search(listing.waiters, &tag, HASH_FIND, nullptr));
    int64 sum = 0;
    for (LOCKMODE wanted = AccessShareLock; entry != nullptr && wanted <= MaxLockMode; wanted++)
        if (DoLockModesConflict(wanted, mode))
            sum += entry->count[wanted];
    return sum;
}

// name, mode, pid, transaction, waiters
static void put_hold(const Listing& listing, const LockInstanceData& lock, LOCKMODE mode,
                     const char* name) {
    TransactionId prepared =
        lock.pid == 0 ? prepared_transaction(listing.locks, lock) : InvalidTransactionId;
    Datum values[5] = {};
    bool nulls[5] = {name == nullptr, false, lock.pid == 0, prepared == InvalidTransactionId};
    if (name != nullptr)
        values[0] = CStringGetTextDatum(name);
    values[1] = CStringGetTextDatum(lock_mode_name(lock.locktag, mode));
    values[2] = Int32GetDatum(lock.pid);
    values[3] = TransactionIdGetDatum(prepared);
    values[4] = Int64GetDatum(waiters_for(listing, lock.locktag, mode));
    add_result_row(listing.output, values, nulls);
}

static void put_holds(Listing* listing, const LockInstanceData& lock) {
    if (is_released(lock))
        return;
    const char* name = shown_name(&listing->names, lock);
    for (LOCKMODE mode = AccessShareLock; mode <= MaxLockMode; mode++)
        if ((lock.holdMask & LOCKBIT_ON(mode)) != 0)
            put_hold(*listing, lock, mode, name);
}

} // namespace interlock::key_lock

#include "idempotency/wait.h"

#include "server/client.h"
#include "server/shared_memory.h"

namespace interlock::idempotency {

// Keys share them by hash: a wake too many is harmless.
constexpr int kConditions = 64;
constexpr long kPoll = 100; // milliseconds

static ConditionVariable* conditions = nullptr;
static uint64 ended = 0; // which to wake when the transaction has ended

namespace {

// One for each process, which alone writes it.
struct WaiterSlot {
    slock_t lock;
    ClaimWaiter waiter; // its pid is 0 while it does not wait
};

} // namespace

static WaiterSlot* slots = nullptr;

static int slot_count() { return MaxBackends + NUM_AUXILIARY_PROCS; }

static void request_memory() {
    RequestAddinShmemSpace(sizeof(ConditionVariable) * kConditions);
    RequestAddinShmemSpace(mul_size(sizeof(WaiterSlot), slot_count()));
}

static void attach_memory() {
    bool found;
    conditions = static_cast<ConditionVariable*>(ShmemInitStruct(
        "pg_interlock idempotency", sizeof(ConditionVariable) * kConditions, &found));
    for (int i = 0; !found && i < kConditions; i++)
        ConditionVariableInit(&conditions[i]);
    slots = static_cast<WaiterSlot*>(ShmemInitStruct("pg_interlock idempotency waiters",
                                                     sizeof(WaiterSlot) * slot_count(), &found));
    for (int i = 0; !found && i < slot_count(); i++) {
        SpinLockInit(&slots[i].lock);
        slots[i].waiter.pid = 0;
    }
}

static void show_wait(const IdempotencyKey& key, const ClaimWait& wait) {
    ClaimWaiter waiter = {MyProcPid, MyDatabaseId, GetUserId(), hash_idempotency_key(key), wait,
                          ""};
    const char* name = claim_name(key);
    int length = pg_mbcliplen(name, static_cast<int>(strlen(name)), kClaimShown - 1);
    memcpy(waiter.name, name, length);
    waiter.name[length] = '\0';
    WaiterSlot* slot = &slots[number_of_process()];
    SpinLockAcquire(&slot->lock);
    slot->waiter = waiter;
    SpinLockRelease(&slot->lock);
}

static void hide_wait(int, Datum) {
    WaiterSlot* slot = &slots[number_of_process()];
    SpinLockAcquire(&slot->lock);
    slot->waiter.pid = 0;
    SpinLockRelease(&slot->lock);
}

static void wake_waiters(XactEvent event, void*) {
    if (ended == 0) // nearly always, and every transaction comes here
        return;
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
        return;
    uint64 to_wake = ended;
    ended = 0;
    for (int i = 0; i < kConditions; i++)
        if ((to_wake >> i & 1) != 0)
            ConditionVariableBroadcast(&conditions[i]);
}

static uint32 wait_event() {
    static uint32 event = 0;
    if (event == 0)
        event = named_wait_event("PgInterlockIdempotency");
    return event;
}

static uint64 number_of(const IdempotencyKey& key) {
    return hash_idempotency_key(key) % kConditions;
}

void preload_idempotency_waits() {
    add_shared_area({request_memory, attach_memory});
    RegisterXactCallback(wake_waiters, nullptr);
}

uint64 hash_idempotency_key(const IdempotencyKey& key) {
    auto hash = [](Datum value, uint64 seed) {
        const text* bytes = DatumGetTextPP(value);
        return hash_bytes_extended(reinterpret_cast<const unsigned char*>(VARDATA_ANY(bytes)),
                                   static_cast<int>(VARSIZE_ANY_EXHDR(bytes)), seed);
    };
    return hash(key.key, hash(key.scope, 0));
}

void note_end_of_claim(const IdempotencyKey& key) {
    if (conditions != nullptr)
        ended |= UINT64CONST(1) << number_of(key);
}

void prepare_to_wait(const IdempotencyKey& key) {
    if (conditions != nullptr)
        ConditionVariablePrepareToSleep(&conditions[number_of(key)]);
}

static void sleep_until_end(const IdempotencyKey& key, int64 milliseconds) {
    long limit = static_cast<long>(Max(1, Min(milliseconds, INT64CONST(3600000))));
    if (conditions == nullptr)
        limit = Min(limit, kPoll);
    else if (!ConditionVariableTimedSleep(&conditions[number_of(key)], 0, wait_event()))
        return; // woken already; else it is the latch that wakes
    wait_for_latch(limit, wait_event());
}

void wait_for_end_of_claim(const IdempotencyKey& key, const ClaimWait& wait, int64 milliseconds) {
    if (slots == nullptr) {
        sleep_until_end(key, milliseconds);
        return;
    }
    show_wait(key, wait);
    PG_ENSURE_ERROR_CLEANUP(hide_wait, 0);
    { sleep_until_end(key, milliseconds); }
    PG_END_ENSURE_ERROR_CLEANUP(hide_wait, 0);
    hide_wait(0, 0);
}

void end_wait() {
    if (conditions != nullptr)
        ConditionVariableCancelSleep();
}

int claim_waiter_count() { return slots != nullptr ? slot_count() : 0; }

bool read_claim_waiter(int number, ClaimWaiter* copy) {
    if (slots[number].waiter.pid == 0)
        return false;
    SpinLockAcquire(&slots[number].lock);
    *copy = slots[number].waiter;
    SpinLockRelease(&slots[number].lock);
    return copy->pid != 0 && copy->database == MyDatabaseId;
}

char* claim_name(const IdempotencyKey& key) {
    return psprintf("%s:%s", TextDatumGetCString(key.scope), TextDatumGetCString(key.key));
}

} // namespace interlock::idempotency

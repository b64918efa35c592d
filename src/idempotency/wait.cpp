#include "idempotency/wait.h"

#include "server/client.h"
#include "server/shared_memory.h"

namespace interlock {

namespace {

// Keys share them by hash: a wake too many is harmless.
constexpr int kConditions = 64;
constexpr long kPoll = 100; // milliseconds

ConditionVariable* conditions = nullptr;
uint64 ended = 0; // which to wake when the transaction has ended

void request_memory() { RequestAddinShmemSpace(sizeof(ConditionVariable) * kConditions); }

void attach_memory() {
    bool found;
    conditions = static_cast<ConditionVariable*>(ShmemInitStruct(
        "pg_interlock idempotency", sizeof(ConditionVariable) * kConditions, &found));
    for (int i = 0; !found && i < kConditions; i++)
        ConditionVariableInit(&conditions[i]);
}

void wake_waiters(XactEvent event, void*) {
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

uint32 wait_event() {
    static uint32 event = 0;
    if (event == 0)
        event = named_wait_event("PgInterlockIdempotency");
    return event;
}

uint64 number_of(const IdempotencyKey& key) { return hash_idempotency_key(key) % kConditions; }

} // namespace

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

void wait_for_end_of_claim(const IdempotencyKey& key, int64 milliseconds) {
    long limit = static_cast<long>(Max(1, Min(milliseconds, INT64CONST(3600000))));
    if (conditions == nullptr)
        limit = Min(limit, kPoll);
    else if (!ConditionVariableTimedSleep(&conditions[number_of(key)], 0, wait_event()))
        return; // woken already; else it is the latch that wakes
    wait_for_latch(limit, wait_event());
}

void end_wait() {
    if (conditions != nullptr)
        ConditionVariableCancelSleep();
}

} // namespace interlock

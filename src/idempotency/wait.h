// Waking the waiters for the end of a committed claim, for which there is no lock to wait on. In
// shared memory; without preload they poll ten times a second.
#pragma once

#include "idempotency/idempotency.h"

namespace interlock::idempotency {

void preload_idempotency_waits();

// Wakes the waiters for the key, once the current transaction has ended.
void note_end_of_claim(const IdempotencyKey& key);

// A wait of this process, as others see it.
struct ClaimWait {
    TimestampTz since;
    TimestampTz until; // the deadline of the claim in the way; 0: it is not known
};

// Sleeps until the key's claim ends, or so long at most; it may wake too early. Ends the session of
// a client that is gone (server/client.h). Call prepare_to_wait first, then check whether there is
// still something to wait for.
void prepare_to_wait(const IdempotencyKey& key);
void wait_for_end_of_claim(const IdempotencyKey& key, const ClaimWait& wait, int64 milliseconds);
void end_wait();

// A process that sleeps so in this database.
constexpr int kClaimShown = 256;
struct ClaimWaiter {
    int32 pid;
    Oid database;
    Oid role;
    uint64 hash; // of the key
    ClaimWait wait;
    char name[kClaimShown]; // scope:key, its first bytes
};

// Runs body(const ClaimWaiter&) for a copy of each. False: nothing is known of them, without
// preload.
template <typename Body>
bool for_each_claim_waiter(Body&& body);
int claim_waiter_count();
bool read_claim_waiter(int number, ClaimWaiter* copy);

// scope:key, as views show it.
char* claim_name(const IdempotencyKey& key);

uint64 hash_idempotency_key(const IdempotencyKey& key);

template <typename Body>
bool for_each_claim_waiter(Body&& body) {
    ClaimWaiter copy;
    for (int i = 0; i < claim_waiter_count(); i++)
        if (read_claim_waiter(i, &copy))
            body(copy);
    return claim_waiter_count() > 0;
}

} // namespace interlock::idempotency

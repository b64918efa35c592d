// Wakes sessions that wait for the end of a committed claim, for which there is no lock to wait
// for. It uses shared memory. Without preload they check ten times a second.
#pragma once

#include "idempotency/idempotency.h"

namespace interlock::idempotency {

void preload_idempotency_waits();

// Wakes the waiters for the key after the current transaction has ended.
void note_end_of_claim(const IdempotencyKey& key);

// A wait of this process, as other sessions see it.
struct ClaimWait {
    TimestampTz since;
    TimestampTz until; // the deadline of the claim that it waits for; 0: not known
};

// First call prepare_to_wait(), then check whether there is still something to wait for.
// wait_for_end_of_claim() sleeps until the key's claim ends, or until the time is over. It may wake
// up too early. It ends the session if the client is gone (server/client.h).
void prepare_to_wait(const IdempotencyKey& key);
void wait_for_end_of_claim(const IdempotencyKey& key, const ClaimWait& wait, int64 milliseconds);
void end_wait();

// A process of this database that waits in this way.
constexpr int kClaimShown = 256;
struct ClaimWaiter {
    int32 pid;
    Oid database;
    Oid role;
    uint64 hash; // hash of the key
    ClaimWait wait;
    char name[kClaimShown]; // scope:key, cut after its first bytes
};

// Runs body(const ClaimWaiter&) with a copy of each waiter. Returns false without preload, because
// the waiters are not known.
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

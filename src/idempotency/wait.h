// Waking the waiters for the end of a committed claim, for which there is no lock to wait on. In
// shared memory; without preload they poll ten times a second.
#pragma once

#include "idempotency/idempotency.h"

namespace interlock {

void preload_idempotency_waits();

// Wakes the waiters for the key, once the current transaction has ended.
void note_end_of_claim(const IdempotencyKey& key);

// Sleeps until the key's claim ends, or so long at most; it may wake too early. Ends the session of
// a client that is gone (server/client.h). Call prepare_to_wait first, then check whether there is
// still something to wait for.
void prepare_to_wait(const IdempotencyKey& key);
void wait_for_end_of_claim(const IdempotencyKey& key, int64 milliseconds);
void end_wait();

uint64 hash_idempotency_key(const IdempotencyKey& key);

} // namespace interlock

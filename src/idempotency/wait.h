// Waking those who wait for the end of a claim that is committed: nothing they could lock tells
// them. In shared memory; without preload they look again ten times a second.
#pragma once

#include "idempotency/idempotency.h"

namespace interlock {

void preload_idempotency_waits();

// Wakes those who wait for the key, once the current transaction has ended.
void note_end_of_claim(const IdempotencyKey& key);

// Sleeps until the key's claim ends, or so long at most; it may wake too early. Ends the session of
// a client that is gone (server/client.h). prepare_to_wait comes first, then a look whether there
// is still something to wait for.
void prepare_to_wait(const IdempotencyKey& key);
void wait_for_end_of_claim(const IdempotencyKey& key, int64 milliseconds);
void end_wait();

uint64 hash_idempotency_key(const IdempotencyKey& key);

} // namespace interlock

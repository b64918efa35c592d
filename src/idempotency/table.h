// The rows of interlock.idempotency and the settings of their scopes.
#pragma once

#include "execution/row_lock.h"
#include "idempotency/idempotency.h"

namespace interlock {

// The settings of a scope, or the defaults when it was never defined. Times in microseconds.
struct IdempotencyScope {
    bool is_job;
    bool replay_failures;
    int64 ttl;
    int64 stale_after;
    int32 max_response_bytes;
};

IdempotencyScope read_scope(Datum name);

struct IdempotencyRow {
    bool found;
    bool completed;
    bool failed; // neither: pending
    bool retryable;
    int64 token;
    int32 attempt;
    TimestampTz deadline;
    TimestampTz expires_at;
    NullableDatum request_hash;
    NullableDatum response;
    NullableDatum result_id;
    NullableDatum checkpoint;
    NullableDatum state;
};

// As a fresh snapshot sees it; with a lock the newest version, not found when another transaction
// has it locked and the lock does not wait.
IdempotencyRow read_idempotency_row(const IdempotencyKey& key, RowLock lock);

// Enters the key as claimed; false when it is there already.
bool insert_claim(const IdempotencyKey& key, const IdempotencyScope& scope, NullableDatum request,
                  Claim* claim);

// Takes over a key that the caller has locked. An expired one starts anew with any request; else
// the hash of the request stays, and for a job the checkpoint.
void take_over(const IdempotencyKey& key, const IdempotencyScope& scope, NullableDatum request,
               const IdempotencyRow& row, bool expired, Claim* claim);

// When a key that ends or is claimed now expires: after its time to live and some slack, in which
// its end does not move the indexed column, so that most updates stay in their page.
TimestampTz expiry_after(const IdempotencyScope& scope, TimestampTz end);

// Expired keys are deleted in batches: their deletion is not urgent.
constexpr TimestampTz kKeySweepGap = USECS_PER_MINUTE;

} // namespace interlock

// The rows of interlock.idempotency and the settings of their scopes.
#pragma once

#include "execution/row_lock.h"
#include "idempotency/idempotency.h"

namespace interlock::idempotency {

// The settings of a scope, or the defaults for a scope that was never defined. Times are in
// microseconds.
struct IdempotencyScope {
    bool is_job;
    bool replay_failures;
    int64 ttl;
    int64 stale_after;
    int32 max_response_bytes;
    int32 max_attempts; // zero: any number
};

IdempotencyScope read_scope(Datum name);

// The interval in microseconds, within the limits of define_idempotency_scope and of the table's
// constraints, because the table's owner may have dropped these constraints.
int64 microseconds(const Interval* span);

// The settings of the scope, with the claim's own times if it has any.
IdempotencyScope with_own_times(IdempotencyScope scope, const Interval* ttl,
                                const Interval* stale_after);

struct IdempotencyRow {
    bool found;
    bool completed;
    bool failed; // pending: neither of the two
    bool retryable;
    int64 token;
    int32 attempt;
    TimestampTz deadline;
    TimestampTz expires_at;
    NullableDatum request_hash;
    NullableDatum response;
    bool response_omitted;
    NullableDatum result_id;
    NullableDatum checkpoint;
    NullableDatum state;
    NullableDatum body;
    const Interval* ttl;         // null: the ttl of the scope
    const Interval* stale_after; // null: the stale_after of the scope
};

// Whether the key was completed or failed with an answer. The answer may not have been kept.
inline bool has_response(const IdempotencyRow& row) {
    return !row.response.isnull || !row.body.isnull || row.response_omitted;
}

// Whether a claim with the request of the row would succeed now, if no other session claims it.
bool is_free(const IdempotencyRow& row, const IdempotencyScope& scope);

// The row as a fresh snapshot sees it. With a lock: its newest version, or not found if another
// transaction has locked it and `lock` does not wait.
IdempotencyRow read_idempotency_row(const IdempotencyKey& key, RowLock lock);

// Inserts the claimed key. Returns false if the key exists already. Raises 09000 if a trigger or
// rule prevents the insert.
bool insert_claim(const IdempotencyKey& key, const IdempotencyScope& scope,
                  const ClaimRequest& request, Claim* claim);

// Takes over a key that the caller has locked. An expired key begins again with any request.
// Otherwise the hash of the request stays, and a job keeps its checkpoint and state.
void take_over(const IdempotencyKey& key, const IdempotencyScope& scope,
               const ClaimRequest& request, const IdempotencyRow& row, bool expired, Claim* claim);

// The hash of the request of a claim that another transaction has written and not committed.
// Returns false if there is none.
bool read_uncommitted_hash(const IdempotencyKey& key, NullableDatum* hash);

// The deadline of an expired key that the sweeper could not delete. The key stays expired, and
// expires_at is when the sweeper tries again.
constexpr TimestampTz kPostponedDeadline = DT_NOBEGIN;

// Tells the sweeper when the key expires.
void note_expiry(TimestampTz expires_at);

// Raises 09000: a write to the table did nothing.
[[noreturn]] void raise_suppressed_claim();

// When a key that ends or is claimed now expires. That is after its time to live and some extra
// time. Within the extra time a completion does not change the indexed column, so most updates stay
// in their page.
TimestampTz expiry_after(const IdempotencyScope& scope, TimestampTz end);

// Expired keys are deleted in batches: their deletion is not urgent.
constexpr TimestampTz kKeySweepGap = USECS_PER_MINUTE;

} // namespace interlock::idempotency

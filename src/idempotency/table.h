// The rows of interlock.idempotency and the settings of their scopes.
#pragma once

#include "execution/row_lock.h"
#include "idempotency/idempotency.h"

namespace interlock::idempotency {

// The settings of a scope, or the defaults when it was never defined. Times in microseconds.
struct IdempotencyScope {
    bool is_job;
    bool replay_failures;
    int64 ttl;
    int64 stale_after;
    int32 max_response_bytes;
    int32 max_attempts; // zero: any number
};

IdempotencyScope read_scope(Datum name);

// Within what define_idempotency_scope and the tables' constraints allow, which their owner may
// have dropped.
int64 microseconds(const Interval* span);

// With the times that a claim has of its own, if any.
IdempotencyScope with_own_times(IdempotencyScope scope, const Interval* ttl,
                                const Interval* stale_after);

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
    bool response_omitted;
    NullableDatum result_id;
    NullableDatum checkpoint;
    NullableDatum state;
    NullableDatum body;
    const Interval* ttl;         // null: the scope's
    const Interval* stale_after; // null: the scope's
};

// Whether it was completed or failed with an answer, which may not have been kept.
inline bool has_response(const IdempotencyRow& row) {
    return !row.response.isnull || !row.body.isnull || row.response_omitted;
}

// Whether a claim with the request of the row would get it now, if nobody else claims it.
bool is_free(const IdempotencyRow& row, const IdempotencyScope& scope);

// As a fresh snapshot sees it; with a lock the newest version, not found when another transaction
// has it locked and the lock does not wait.
IdempotencyRow read_idempotency_row(const IdempotencyKey& key, RowLock lock);

// Enters the key as claimed; false when it is there already. 09000 when a trigger or rule keeps it
// from being written.
bool insert_claim(const IdempotencyKey& key, const IdempotencyScope& scope,
                  const ClaimRequest& request, Claim* claim);

// Takes over a key that the caller has locked. An expired one starts anew with any request; else
// the hash of the request stays, and for a job the checkpoint and the state.
void take_over(const IdempotencyKey& key, const IdempotencyScope& scope,
               const ClaimRequest& request, const IdempotencyRow& row, bool expired, Claim* claim);

// The hash of the request of a claim that another transaction has written and not committed; false
// when there is none.
bool read_uncommitted_hash(const IdempotencyKey& key, NullableDatum* hash);

// The deadline of a key that has expired, and that the sweeper could not delete: it stays expired,
// and expires_at is when to try again.
constexpr TimestampTz kPostponedDeadline = DT_NOBEGIN;

// When the sweeper has to come.
void note_expiry(TimestampTz expires_at);

// 09000: a write of the table did nothing.
[[noreturn]] void raise_suppressed_claim();

// When a key that ends or is claimed now expires: after its time to live and some slack, in which
// its end does not move the indexed column, so that most updates stay in their page.
TimestampTz expiry_after(const IdempotencyScope& scope, TimestampTz end);

// Expired keys are deleted in batches: their deletion is not urgent.
constexpr TimestampTz kKeySweepGap = USECS_PER_MINUTE;

} // namespace interlock::idempotency

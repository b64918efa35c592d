// Idempotency: a table of keys, each claimed by one worker at a time, completed once, and replayed
// to later requests.
//
// A key goes pending (claimed, until its deadline) -> completed or failed (until it expires). A
// claim writes it if there is no key, an expired one, a pending one past its deadline, or a failure
// that may be tried again, unless it was tried as often as the scope allows. Each claim has a
// token, the next number of a sequence: complete, fail, checkpoint, extend and assert refuse any
// other token (IL008), so that a worker whose claim was taken over cannot disturb its successor. A
// claim past its deadline that was not taken over is still valid.
//
// A claim that is not committed is guarded by a lock on its name (key_lock/key_lock.h), so that a
// duplicate learns at once that it is in progress instead of waiting on the index, or waits as long
// as it wants to. Under REPEATABLE READ and above, a key that changed after the snapshot is 40001.
//
// Callers need a grant of the scope (idempotency/grant.h) and no right on interlock.idempotency,
// which the functions reach with the rights of its owner (idempotency/access.h).
//
// A takeover's token is greater than the row's, also when the sequence was set back (a restored
// dump, setval). A worker that outlives its row, deleted after it has expired, is fenced off only
// as long as the sequence goes on.
#pragma once

#include "key_lock/hold.h"
#include "server/deadline.h"
#include "table/plan.h"
#include "table/row.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::idempotency {

constexpr size_t kMaxScopeBytes = 255;
constexpr size_t kMaxIdempotencyKeyBytes = 768;

// One row of the table, by scope and key.
struct IdempotencyKey {
    Datum scope; // text
    Datum key;   // text
};

// What a claim is for.
struct ClaimRequest {
    NullableDatum hash;          // null: not compared
    const Interval* ttl;         // null: the scope's
    const Interval* stale_after; // null: the scope's
    NullableDatum state;         // of a job that begins
};

enum class ClaimOutcome { kAcquired, kReplay, kInProgress, kMismatch, kFailed, kExhausted };

// What a claim returns; nulls are Datum(0) with the flag set.
struct Claim {
    ClaimOutcome outcome;
    int64 token;
    int32 attempt;
    NullableDatum response;
    NullableDatum body;
    bool has_response; // when it has ended: also true for an answer that was not kept
    NullableDatum result_id;
    NullableDatum checkpoint;
    NullableDatum state;
    TimestampTz deadline; // of the claim, or of the one in the way; zero if it is not known
};

// What a key is completed with.
struct Answer {
    NullableDatum response; // jsonb
    NullableDatum result_id;
    NullableDatum body; // bytea
};

const char* outcome_name(ClaimOutcome outcome);

// Arguments n and n + 1 as scope and key: 22004, 22023 when empty or too long.
Datum scope_argument(const Arguments& arguments, int n);
IdempotencyKey idempotency_key_argument(const Arguments& arguments, int n);

// Claims the key, or returns what is in the way; 22023 when it asks for more than the scope allows.
// This and complete_key raise 42501 unless the current user may use the scope.
Claim claim_key(const IdempotencyKey& key, const ClaimRequest& request, const Deadline& wait);

// Completes it; IL008 unless the token is the current one. A repeated call does nothing. False when
// the answer is too large to be kept.
bool complete_key(const IdempotencyKey& key, int64 token, const Answer& answer);

// The lock that each claim of the key takes, and whether this transaction has it.
key_lock::LockName lock_name_of(const IdempotencyKey& key);
bool is_claimed_here(const IdempotencyKey& key);

// The counters of the scope (contention/count.h).
LineRef line_of(const IdempotencyKey& key);

// Raises IL008.
[[noreturn]] void raise_claim_lost(const IdempotencyKey& key, int64 token);

// The table's oid, and a cached plan on it. The plan must use the index: one that was made for few
// keys would scan all of them, and lock all of them against serializable transactions.
Oid idempotency_table();
template <typename Build>
TablePlan idempotency_plan(PlanKind kind, Build&& build) {
    PlanShape shape = {idempotency_table(), kind};
    shape.by_index = true;
    return plan_of(shape, build);
}

// sha-256 of the request, equal for equal JSON: the order of members, the form of numbers and
// escapes make no difference.
NullableDatum hash_request(const Jsonb* request);

} // namespace interlock::idempotency

// Idempotency: a table of keys. Each key is claimed by one worker at a time, completed once, and
// replayed to later requests.
//
// A key is pending (claimed, until its deadline), then completed or failed (until it expires). A
// claim succeeds in four cases: there is no key, the key has expired, it is pending past its
// deadline, or it has failed and may be tried again. It does not succeed if the key was tried as
// often as the scope allows. Each claim has a token, the next number of a sequence. complete, fail,
// checkpoint, extend and assert raise IL008 for any other token. So a worker whose claim was taken
// over cannot disturb its successor. A claim past its deadline that was not taken over is still
// valid.
//
// A lock on its name protects a claim that is not committed (key_lock/key_lock.h). So a second
// request learns at once that the key is in progress, and does not wait on the index, or it waits
// as long as it wants to. Under REPEATABLE READ and above, a key that changed after the snapshot
// raises 40001.
//
// Callers need a grant of the scope (idempotency/grant.h), and no privilege on
// interlock.idempotency. The functions access the table with the rights of its owner
// (idempotency/access.h).
//
// The token of a takeover is greater than the token in the row, also if the sequence was set back
// by a restored dump or setval. If a row was deleted after it expired, an old worker is kept out
// only as long as the sequence was not set back.
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

// The request for a claim.
struct ClaimRequest {
    NullableDatum hash;          // null: not compared
    const Interval* ttl;         // null: the ttl of the scope
    const Interval* stale_after; // null: the stale_after of the scope
    NullableDatum state;         // initial state of a job
};

enum class ClaimOutcome { kAcquired, kReplay, kInProgress, kMismatch, kFailed, kExhausted };

// The result of a claim. Nulls are Datum(0) with the flag set.
struct Claim {
    ClaimOutcome outcome;
    int64 token;
    int32 attempt;
    NullableDatum response;
    NullableDatum body;
    bool has_response; // if it has ended: also true for an answer that was not kept
    NullableDatum result_id;
    NullableDatum checkpoint;
    NullableDatum state;
    TimestampTz deadline; // of the claim, or of the claim that prevents it; zero: not known
};

// The answer with which a key is completed.
struct Answer {
    NullableDatum response; // jsonb
    NullableDatum result_id;
    NullableDatum body; // bytea
};

const char* outcome_name(ClaimOutcome outcome);

// Arguments n and n + 1 as scope and key. Raise 22004 for null, and 22023 for an empty or too long
// text.
Datum scope_argument(const Arguments& arguments, int n);
IdempotencyKey idempotency_key_argument(const Arguments& arguments, int n);

// Claims the key, or returns the claim that prevents it. Raises 22023 if the request exceeds what
// the scope allows. claim_key() and complete_key() raise 42501 unless the current user may use the
// scope.
Claim claim_key(const IdempotencyKey& key, const ClaimRequest& request, const Deadline& wait);

// Completes the key. Raises IL008 unless the token is the current one. A repeated call does
// nothing. Returns false if the answer is too large to be kept.
bool complete_key(const IdempotencyKey& key, int64 token, const Answer& answer);

// The lock that each claim of the key acquires, and whether this transaction has it.
key_lock::LockName lock_name_of(const IdempotencyKey& key);
bool is_claimed_here(const IdempotencyKey& key);

// The counters of the scope (contention/count.h).
LineRef line_of(const IdempotencyKey& key);

// The table's OID, and a cached plan for it. The plan must use the index. A plan that was made for
// few keys would scan all keys, and lock all of them against serializable transactions.
Oid idempotency_table();
template <typename Build>
TablePlan idempotency_plan(PlanKind kind, Build&& build) {
    PlanShape shape = {idempotency_table(), kind};
    shape.by_index = true;
    return plan_of(shape, build);
}

// The SHA-256 hash of the request. Equal JSON has the same hash: the order of members, the form of
// numbers, and escapes do not matter.
NullableDatum hash_request(const Jsonb* request);

} // namespace interlock::idempotency

// What idempotency reads and writes of its keys, without statements (execution/probe.h). Each must
// do what the statement does that runs where it is declined.
#pragma once

#include "execution/read.h"
#include "idempotency/access.h"
#include "idempotency/idempotency.h"

namespace interlock {

enum IdempotencyColumn : AttrNumber {
    kScope = 1,
    kKey,
    kStatus,
    kRequestHash,
    kToken,
    kAttempt,
    kClaimedAt,
    kDeadline,
    kFinishedAt,
    kExpiresAt,
    kRetryable,
    kResponse,
    kResponseOmitted,
    kResultId,
    kCheckpoint,
    kState,
};

// Whether a text has exactly those bytes.
bool is_text(NullableDatum value, const char* expected);

// A copy of a value by reference.
NullableDatum copied(NullableDatum value, MemoryContext context);

// Runs body(rel, facts) on the table with the rights of its owner, as with_own_table.
template <typename Body>
DirectOutcome with_keys_directly(LOCKMODE mode, Body&& body) {
    return with_own_table(kIdempotencyKeys, mode, [&](Relation rel, const RelationFacts* facts) {
        DirectOutcome outcome = DirectOutcome::kDeclined;
        as_owner_of_keys(rel, facts, [&] { outcome = body(rel, facts); });
        return outcome;
    });
}

// visit(RowValues) must copy what it keeps.
template <typename Visit>
DirectOutcome read_key_directly(const IdempotencyKey& name, RowLock lock, Visit&& visit) {
    Key key = {{name.scope, name.key}};
    LOCKMODE mode = lock.strength == RowStrength::kNone ? AccessShareLock : RowShareLock;
    return with_keys_directly(mode, [&](Relation rel, const RelationFacts* facts) {
        return read_directly({rel, facts, &key}, lock,
                             [&](TupleTableSlot* row) { visit(values_in(row)); });
    });
}

struct ClaimTimes {
    TimestampTz claimed_at;
    TimestampTz deadline;
    TimestampTz expires_at;
};

// Enters the key as claimed; the caller has looked and found none.
DirectOutcome insert_claim_directly(const IdempotencyKey& key, NullableDatum request,
                                    const ClaimTimes& times, Claim* claim);

// What a takeover leaves of a row, and sets.
struct Takeover {
    ClaimTimes times;
    int32 attempt;
    NullableDatum request; // null: the row's own, unless it is forgotten
    bool forgets_request;
    bool forgets_progress;
};
DirectOutcome take_over_directly(const IdempotencyKey& key, const Takeover& takeover, Claim* claim);

// Changes a claim that is still the token's. The expiry moves to `moved` if it is before `least`.
struct Expiry {
    TimestampTz least;
    TimestampTz moved;
};
DirectOutcome update_claim_directly(const IdempotencyKey& key, int64 token, const Expiry& expiry,
                                    const Changes& changes);

} // namespace interlock

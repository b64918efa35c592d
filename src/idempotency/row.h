// The rows of interlock.idempotency, as the functions read and write them (execution/write.h).
#pragma once

#include "execution/probe.h"
#include "idempotency/access.h"
#include "idempotency/idempotency.h"

namespace interlock::inline execution {
struct RowWrite;
} // namespace interlock::inline execution

namespace interlock::idempotency {

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
    kBody,
    kOwnTtl,
    kOwnStaleAfter,
};

// Whether the text has exactly these bytes.
bool is_text(NullableDatum value, const char* expected);

// Runs body(KeyedRow) for the row of a key, with the rights of the table's owner.
template <typename Body>
void with_key(const IdempotencyKey& name, LOCKMODE mode, Body&& body) {
    with_keys(mode, [&](Relation rel, const TableInfo* info) {
        Key key = {&info->key, {name.scope, name.key}};
        body(KeyedRow{rel, info, &key});
    });
}

void set_value(RowWrite* write, AttrNumber column, NullableDatum value);
inline void set_value(RowWrite* write, AttrNumber column, Datum value) {
    set_value(write, column, NullableDatum{value, false});
}

} // namespace interlock::idempotency

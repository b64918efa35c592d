#include "idempotency/table.h"

#include "execution/insert.h"
#include "execution/read.h"
#include "execution/write.h"
#include "idempotency/row.h"
#include "sweeper/deadline.h"
#include "table/own_table.h"

namespace interlock {

namespace {

void note_expiry(TimestampTz expires_at) { note_deadline(expires_at + kKeySweepGap); }

// The columns that are read of a key, in this order.
constexpr AttrNumber kRead[] = {kStatus,   kRetryable,  kToken,       kAttempt,
                                kDeadline, kExpiresAt,  kRequestHash, kResponse,
                                kResultId, kCheckpoint, kState};

IdempotencyRow row_of(const NullableDatum* columns) {
    IdempotencyRow row = {};
    row.found = true;
    row.completed = is_text(columns[0], "completed");
    row.failed = is_text(columns[0], "failed");
    row.retryable = DatumGetBool(columns[1].value);
    row.token = DatumGetInt64(columns[2].value);
    row.attempt = DatumGetInt32(columns[3].value);
    row.deadline = DatumGetTimestampTz(columns[4].value);
    row.expires_at = DatumGetTimestampTz(columns[5].value);
    row.request_hash = columns[6];
    row.response = columns[7];
    row.result_id = columns[8];
    row.checkpoint = columns[9];
    row.state = columns[10];
    return row;
}

struct ClaimTimes {
    TimestampTz claimed_at;
    TimestampTz deadline;
    TimestampTz expires_at;
};

ClaimTimes times_from_now(const IdempotencyScope& scope) {
    TimestampTz now = GetCurrentTimestamp();
    TimestampTz deadline = now + scope.stale_after;
    return {now, deadline, expiry_after(scope, deadline)};
}

// What a takeover leaves of a row, and sets.
struct Takeover {
    ClaimTimes times;
    int32 attempt;
    NullableDatum request; // null: the row's own, unless it is forgotten
    bool forgets_request;
    bool forgets_progress;
};

void set_fresh(RowWrite* write) {
    Expressions& terms = write->terms;
    const Expression* no = terms.literal(BOOLOID, {BoolGetDatum(false), false});
    write->set(kStatus, terms.literal_text("pending"));
    write->set(kRetryable, no);
    write->set(kResponse, terms.null_of(kResponse));
    write->set(kResponseOmitted, no);
    write->set(kResultId, terms.null_of(kResultId));
    write->set(kFinishedAt, terms.null_of(kFinishedAt));
}

// The column's value, or null where it is forgotten.
const Expression* unless(Expressions* terms, bool is_forgotten, AttrNumber column) {
    return terms->choose(terms->negation(terms->value(BOOLOID, BoolGetDatum(is_forgotten))),
                         terms->column(column), terms->null_of(column));
}

void set_takeover(RowWrite* write, const Takeover& takeover) {
    Expressions& terms = write->terms;
    set_fresh(write);
    // Also when the sequence was set back, so that the previous owner is fenced off.
    write->set(kToken, terms.greatest(terms.next_number("idempotency_token"),
                                      terms.successor(terms.column(kToken))));
    set_value(write, kAttempt, Int32GetDatum(takeover.attempt));
    set_value(write, kClaimedAt, TimestampTzGetDatum(takeover.times.claimed_at));
    set_value(write, kDeadline, TimestampTzGetDatum(takeover.times.deadline));
    set_value(write, kExpiresAt, TimestampTzGetDatum(takeover.times.expires_at));
    write->set(kRequestHash,
               terms.coalesce(terms.value(BYTEAOID, takeover.request),
                              unless(&terms, takeover.forgets_request, kRequestHash)));
    for (AttrNumber column : {kCheckpoint, kState})
        write->set(column, unless(&terms, takeover.forgets_progress, column));
}

bool write_takeover(const IdempotencyKey& key, const Takeover& takeover, Claim* claim) {
    NullableDatum stored[3];
    bool taken = false;
    with_key(key, RowExclusiveLock, [&](const KeyedRow& row) {
        RowWrite write(row, PlanKind("idempotency_take"));
        write.by_index = true;
        set_takeover(&write, takeover);
        for (AttrNumber column : {kToken, kCheckpoint, kState})
            write.returns(column);
        taken = write_row(write, stored);
    });
    if (!taken)
        return false;
    claim->token = DatumGetInt64(stored[0].value);
    claim->attempt = takeover.attempt;
    claim->checkpoint = stored[1];
    claim->state = stored[2];
    return true;
}

} // namespace

Oid idempotency_table() { return own_table("idempotency"); }

TimestampTz expiry_after(const IdempotencyScope& scope, TimestampTz end) {
    return end + scope.ttl + scope.ttl / 8;
}

IdempotencyRow read_idempotency_row(const IdempotencyKey& key, RowLock lock) {
    NullableDatum columns[lengthof(kRead)];
    bool found = false;
    LOCKMODE mode = lock.strength == RowStrength::kNone ? AccessShareLock : RowShareLock;
    with_key(key, mode, [&](const KeyedRow& row) {
        found = read_row({row, PlanKind("idempotency_read"), kRead, lengthof(kRead), lock, true},
                         columns);
    });
    return found ? row_of(columns) : IdempotencyRow{};
}

bool insert_claim(const IdempotencyKey& key, const IdempotencyScope& scope, NullableDatum request,
                  Claim* claim) {
    ClaimTimes times = times_from_now(scope);
    const NamedValue values[] = {
        {kScope, TEXTOID, key.scope},
        {kKey, TEXTOID, key.key},
        {kRequestHash, BYTEAOID, request.value, request.isnull},
        {kClaimedAt, TIMESTAMPTZOID, TimestampTzGetDatum(times.claimed_at)},
        {kDeadline, TIMESTAMPTZOID, TimestampTzGetDatum(times.deadline)},
        {kExpiresAt, TIMESTAMPTZOID, TimestampTzGetDatum(times.expires_at)},
    };
    constexpr AttrNumber kReturned[] = {kToken, kAttempt};
    NullableDatum stored[lengthof(kReturned)];
    bool inserted = false;
    with_key(key, RowExclusiveLock, [&](const KeyedRow& row) {
        inserted = insert_row({row.rel, row.info, PlanKind("idempotency_insert"), values,
                               lengthof(values), kReturned, lengthof(kReturned), true},
                              stored);
    });
    if (!inserted)
        return false;
    claim->token = DatumGetInt64(stored[0].value);
    claim->attempt = DatumGetInt32(stored[1].value);
    note_expiry(times.expires_at);
    return true;
}

void take_over(const IdempotencyKey& key, const IdempotencyScope& scope, NullableDatum request,
               const IdempotencyRow& row, bool expired, Claim* claim) {
    Takeover takeover = {times_from_now(scope), expired ? 1 : row.attempt + 1, request, expired,
                         expired || !scope.is_job};
    if (!write_takeover(key, takeover, claim))
        ereport(ERROR, (errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
                        errmsg("a trigger or rule of interlock.idempotency keeps the key from "
                               "being claimed")));
    note_expiry(takeover.times.expires_at);
}

} // namespace interlock

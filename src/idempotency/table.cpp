#include "idempotency/table.h"

#include "execution/insert.h"
#include "execution/read.h"
#include "execution/write.h"
#include "idempotency/row.h"
#include "sweeper/deadline.h"
#include "table/own_table.h"

namespace interlock::idempotency {

// The columns that are read of a key, in this order.
constexpr AttrNumber kRead[] = {kStatus,    kRetryable,       kToken,    kAttempt,  kDeadline,
                                kExpiresAt, kRequestHash,     kResponse, kResultId, kCheckpoint,
                                kState,     kResponseOmitted, kBody,     kOwnTtl,   kOwnStaleAfter};

static const Interval* span_of(NullableDatum value) {
    return value.isnull ? nullptr : DatumGetIntervalP(value.value);
}

static IdempotencyRow row_of(const NullableDatum* columns) {
    IdempotencyRow row = {};
    row.found = true;
    row.completed = is_text(columns[0], "completed");
    row.failed = is_text(columns[0], "failed");
    row.retryable = DatumGetBool(columns[1].value);
    row.token = DatumGetInt64(columns[2].value);
    row.attempt = DatumGetInt32(columns[3].value);
    row.deadline = DatumGetTimestampTz(columns[4].value);
    row.expires_at = DatumGetTimestampTz(columns[5].value);
    if (row.deadline == kPostponedDeadline)
        row.expires_at = DT_NOBEGIN;
    row.request_hash = columns[6];
    row.response = columns[7];
    row.result_id = columns[8];
    row.checkpoint = columns[9];
    row.state = columns[10];
    row.response_omitted = DatumGetBool(columns[11].value);
    row.body = columns[12];
    row.ttl = span_of(columns[13]);
    row.stale_after = span_of(columns[14]);
    return row;
}

namespace {

struct ClaimTimes {
    TimestampTz claimed_at;
    TimestampTz deadline;
    TimestampTz expires_at;
};

} // namespace

static ClaimTimes times_from_now(const IdempotencyScope& scope) {
    TimestampTz now = GetCurrentTimestamp();
    TimestampTz deadline = now + scope.stale_after;
    return {now, deadline, expiry_after(scope, deadline)};
}

static NullableDatum value_of(const Interval* span) {
    return {IntervalPGetDatum(span), span == nullptr};
}

namespace {

// What a takeover leaves of a row, and sets.
struct Takeover {
    ClaimTimes times;
    int32 attempt;
    const ClaimRequest& request; // without a hash: the row's own, unless it is forgotten
    bool forgets_request;
    bool forgets_progress;
};

} // namespace

static void set_fresh(RowWrite* write) {
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
static const Expression* unless(Expressions* terms, bool is_forgotten, AttrNumber column) {
    return terms->choose(terms->negation(terms->value(BOOLOID, BoolGetDatum(is_forgotten))),
                         terms->column(column), terms->null_of(column));
}

static void set_takeover(RowWrite* write, const Takeover& takeover) {
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
               terms.coalesce(terms.value(BYTEAOID, takeover.request.hash),
                              unless(&terms, takeover.forgets_request, kRequestHash)));
    write->set(kCheckpoint, unless(&terms, takeover.forgets_progress, kCheckpoint));
    write->set(kState, terms.coalesce(unless(&terms, takeover.forgets_progress, kState),
                                      terms.value(JSONBOID, takeover.request.state)));
    write->set(kBody, terms.null_of(kBody));
    set_value(write, kOwnTtl, value_of(takeover.request.ttl));
    set_value(write, kOwnStaleAfter, value_of(takeover.request.stale_after));
}

static bool write_takeover(const IdempotencyKey& key, const Takeover& takeover, Claim* claim) {
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
    claim->deadline = takeover.times.deadline;
    return true;
}

Oid idempotency_table() { return own_table("idempotency"); }

TimestampTz expiry_after(const IdempotencyScope& scope, TimestampTz end) {
    return end + scope.ttl + scope.ttl / 8;
}

void note_expiry(TimestampTz expires_at) { note_deadline(expires_at + kKeySweepGap); }

void raise_suppressed_claim() {
    ereport(ERROR, (errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
                    errmsg("a trigger or rule of interlock.idempotency keeps the key from being "
                           "written")));
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

bool read_uncommitted_hash(const IdempotencyKey& key, NullableDatum* hash) {
    bool found = false;
    with_key(key, AccessShareLock, [&](const KeyedRow& row) {
        if (!runs_only_ours(row.rel, row.info))
            return;
        Relation index = open_key_index(row.info->key, AccessShareLock);
        if (index == nullptr)
            return;
        TupleTableSlot* slot = table_slot_create(row.rel, nullptr);
        found = probe_uncommitted(row, index, slot);
        if (found) {
            hash->value = slot_getattr(slot, kRequestHash, &hash->isnull);
            if (!hash->isnull)
                hash->value = datumCopy(hash->value, false, -1);
        }
        ExecDropSingleTupleTableSlot(slot);
        index_close(index, NoLock);
    });
    return found;
}

bool insert_claim(const IdempotencyKey& key, const IdempotencyScope& scope,
                  const ClaimRequest& request, Claim* claim) {
    ClaimTimes times = times_from_now(scope);
    NamedValue values[9] = {
        {kScope, TEXTOID, key.scope},
        {kKey, TEXTOID, key.key},
        {kRequestHash, BYTEAOID, request.hash.value, request.hash.isnull},
        {kClaimedAt, TIMESTAMPTZOID, TimestampTzGetDatum(times.claimed_at)},
        {kDeadline, TIMESTAMPTZOID, TimestampTzGetDatum(times.deadline)},
        {kExpiresAt, TIMESTAMPTZOID, TimestampTzGetDatum(times.expires_at)},
    };
    int count = 6;
    if (!request.state.isnull)
        values[count++] = {kState, JSONBOID, request.state.value};
    if (request.ttl != nullptr)
        values[count++] = {kOwnTtl, INTERVALOID, IntervalPGetDatum(request.ttl)};
    if (request.stale_after != nullptr)
        values[count++] = {kOwnStaleAfter, INTERVALOID, IntervalPGetDatum(request.stale_after)};
    constexpr AttrNumber kReturned[] = {kToken, kAttempt};
    NullableDatum stored[lengthof(kReturned)];
    bool inserted = false;
    bool may_be_suppressed = false;
    with_key(key, RowExclusiveLock, [&](const KeyedRow& row) {
        may_be_suppressed = !runs_only_ours(row.rel, row.info);
        inserted = insert_row({row.rel, row.info, PlanKind("idempotency_insert"), values, count,
                               kReturned, lengthof(kReturned), true},
                              stored);
    });
    // Who waits for a key that is not there would wait for nothing.
    if (!inserted && may_be_suppressed && !read_idempotency_row(key, {}).found)
        raise_suppressed_claim();
    if (!inserted)
        return false;
    claim->token = DatumGetInt64(stored[0].value);
    claim->attempt = DatumGetInt32(stored[1].value);
    claim->state = request.state;
    claim->deadline = times.deadline;
    note_expiry(times.expires_at);
    return true;
}

void take_over(const IdempotencyKey& key, const IdempotencyScope& scope,
               const ClaimRequest& request, const IdempotencyRow& row, bool expired, Claim* claim) {
    Takeover takeover = {times_from_now(scope), expired ? 1 : row.attempt + 1, request, expired,
                         expired || !scope.is_job};
    if (!write_takeover(key, takeover, claim))
        raise_suppressed_claim();
    note_expiry(takeover.times.expires_at);
}

} // namespace interlock::idempotency

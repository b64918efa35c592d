#include "idempotency/direct.h"

#include "execution/column_default.h"
#include "execution/insert.h"
#include "execution/update.h"

namespace interlock {

namespace {

constexpr MadeColumn kKeyColumns[] = {
    {"scope", TEXTOID, true},
    {"key", TEXTOID, true},
    {"status", TEXTOID, true},
    {"request_hash", BYTEAOID, false},
    {"token", INT8OID, true},
    {"attempt", INT4OID, true},
    {"claimed_at", TIMESTAMPTZOID, true},
    {"deadline", TIMESTAMPTZOID, true},
    {"finished_at", TIMESTAMPTZOID, false},
    {"expires_at", TIMESTAMPTZOID, true},
    {"retryable", BOOLOID, true},
    {"response", JSONBOID, false},
    {"response_omitted", BOOLOID, true},
    {"result_id", TEXTOID, false},
    {"checkpoint", TEXTOID, false},
    {"state", JSONBOID, false},
};

bool is_claim_of(const RowValues& row, int64 token) {
    NullableDatum stored = row[kToken];
    return !stored.isnull && DatumGetInt64(stored.value) == token &&
           is_text(row[kStatus], "PENDING");
}

// Runs body(KeyedRow) for the row of a key that is to be written.
template <typename Body>
DirectOutcome writing_key(const IdempotencyKey& key, Body&& body) {
    Key name = {{key.scope, key.key}};
    return with_keys_directly(RowExclusiveLock, [&](Relation rel, const RelationFacts* facts) {
        return body(KeyedRow{rel, facts, &name});
    });
}

Datum next_token() {
    Datum sequence = ObjectIdGetDatum(own_table("idempotency_token"));
    Const* argument = makeConst(REGCLASSOID, -1, InvalidOid, sizeof(Oid), sequence, false, true);
    return call_with_constants(makeFuncExpr(F_NEXTVAL, INT8OID, list_make1(argument), InvalidOid,
                                            InvalidOid, COERCE_EXPLICIT_CALL))
        .value;
}

// Also when the sequence was set back, so that the holder before is fenced off.
Datum token_after(const RowValues& row) {
    int64 token = DatumGetInt64(next_token());
    int64 before = DatumGetInt64(row[kToken].value);
    if (before >= token && pg_add_s64_overflow(before, 1, &token))
        ereport(ERROR,
                (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("bigint out of range")));
    return Int64GetDatum(token);
}

constexpr NullableDatum kNull = {0, true};

void assign_times(Changes* changes, const ClaimTimes& times) {
    assign(changes, kClaimedAt, TimestampTzGetDatum(times.claimed_at));
    assign(changes, kDeadline, TimestampTzGetDatum(times.deadline));
    assign(changes, kExpiresAt, TimestampTzGetDatum(times.expires_at));
}

void forget_or_keep(Changes* changes, AttrNumber attnum, bool forget) {
    if (forget)
        assign(changes, attnum, kNull);
    else
        assign(changes, attnum);
}

// The token comes last, and when the row is there.
Changes takeover_changes(const Takeover& takeover) {
    Changes changes = extended({}, kState);
    assign(&changes, kStatus, CStringGetTextDatum("PENDING"));
    assign(&changes, kRetryable, BoolGetDatum(false));
    assign(&changes, kResponse, kNull);
    assign(&changes, kResponseOmitted, BoolGetDatum(false));
    assign(&changes, kResultId, kNull);
    assign(&changes, kFinishedAt, kNull);
    assign(&changes, kAttempt, Int32GetDatum(takeover.attempt));
    assign_times(&changes, takeover.times);
    if (!takeover.request.isnull)
        assign(&changes, kRequestHash, takeover.request);
    else
        forget_or_keep(&changes, kRequestHash, takeover.forgets_request);
    forget_or_keep(&changes, kCheckpoint, takeover.forgets_progress);
    forget_or_keep(&changes, kState, takeover.forgets_progress);
    assign(&changes, kToken, kNull);
    return changes;
}

void set_last(const Changes& changes, Datum value) {
    changes.values[changes.count - 1] = value;
    changes.nulls[changes.count - 1] = false;
}

} // namespace

const OwnTable kIdempotencyKeys = {"idempotency", kKeyColumns, lengthof(kKeyColumns), 2};

bool is_text(NullableDatum value, const char* expected) {
    if (value.isnull)
        return false;
    const text* bytes = DatumGetTextPP(value.value);
    size_t length = strlen(expected);
    return VARSIZE_ANY_EXHDR(bytes) == length && memcmp(VARDATA_ANY(bytes), expected, length) == 0;
}

NullableDatum copied(NullableDatum value, MemoryContext context) {
    if (!value.isnull)
        value.value = in_context(context, [&] { return datumCopy(value.value, false, -1); });
    return value;
}

DirectOutcome insert_claim_directly(const IdempotencyKey& key, NullableDatum request,
                                    const ClaimTimes& times, Claim* claim) {
    return writing_key(key, [&](const KeyedRow& row) {
        const NamedValue values[] = {
            {kScope, TEXTOID, key.scope},
            {kKey, TEXTOID, key.key},
            {kRequestHash, BYTEAOID, request.value, request.isnull},
            {kClaimedAt, TIMESTAMPTZOID, TimestampTzGetDatum(times.claimed_at)},
            {kDeadline, TIMESTAMPTZOID, TimestampTzGetDatum(times.deadline)},
            {kExpiresAt, TIMESTAMPTZOID, TimestampTzGetDatum(times.expires_at)},
        };
        RowInsert insert = {row.rel, row.facts, values, lengthof(values)};
        return insert_directly(insert, [&](TupleTableSlot* slot) {
            RowValues stored = values_in(slot);
            claim->token = DatumGetInt64(stored[kToken].value);
            claim->attempt = DatumGetInt32(stored[kAttempt].value);
        });
    });
}

DirectOutcome take_over_directly(const IdempotencyKey& key, const Takeover& takeover,
                                 Claim* claim) {
    MemoryContext caller = CurrentMemoryContext;
    return writing_key(key, [&](const KeyedRow& row) {
        RowUpdate update = {row, takeover_changes(takeover)};
        return update_directly(
            update,
            [&](TupleTableSlot* slot) {
                set_last(update.changes, token_after(values_in(slot)));
                return true;
            },
            [&](TupleTableSlot* slot) {
                RowValues stored = values_in(slot);
                claim->token = DatumGetInt64(stored[kToken].value);
                claim->checkpoint = copied(stored[kCheckpoint], caller);
                claim->state = copied(stored[kState], caller);
            });
    });
}

DirectOutcome update_claim_directly(const IdempotencyKey& key, int64 token, const Expiry& expiry,
                                    const Changes& changes) {
    return writing_key(key, [&](const KeyedRow& row) {
        RowUpdate update = {row, extended(changes, 1)};
        assign(&update.changes, kExpiresAt, kNull);
        return update_directly(
            update,
            [&](TupleTableSlot* slot) {
                RowValues values = values_in(slot);
                NullableDatum expires_at = values[kExpiresAt];
                bool late_enough =
                    !expires_at.isnull && DatumGetTimestampTz(expires_at.value) >= expiry.least;
                set_last(update.changes,
                         late_enough ? expires_at.value : TimestampTzGetDatum(expiry.moved));
                return is_claim_of(values, token);
            },
            [](TupleTableSlot*) {});
    });
}

} // namespace interlock

#include "idempotency/table.h"

#include "idempotency/direct.h"
#include "sweeper/deadline.h"
#include "table/own_table.h"

namespace interlock {

namespace {

// Column n of the row that SPI returned.
NullableDatum column(int n) {
    NullableDatum result;
    result.value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, n, &result.isnull);
    return result;
}

void note_expiry(TimestampTz expires_at) { note_deadline(expires_at + kKeySweepGap); }

// What is read of a key, in this order.
constexpr AttrNumber kRead[] = {kStatus,   kRetryable,  kToken,       kAttempt,
                                kDeadline, kExpiresAt,  kRequestHash, kResponse,
                                kResultId, kCheckpoint, kState};

void add_read(Statement* statement, RowLock lock) {
    const char* separator = "SELECT ";
    for (AttrNumber attnum : kRead) {
        statement->add("%s%s", separator, kIdempotencyKeys.columns[attnum - 1].name);
        separator = ", ";
    }
    statement->add(" FROM interlock.idempotency WHERE scope OPERATOR(pg_catalog.=) $%d",
                   statement->parameter(TEXTOID));
    statement->add(" AND key OPERATOR(pg_catalog.=) $%d", statement->parameter(TEXTOID));
    add_row_lock(statement, lock);
}

// The values of kRead; those by reference are copied to the context.
IdempotencyRow row_of(const NullableDatum* columns, MemoryContext context) {
    IdempotencyRow row = {};
    row.found = true;
    row.completed = is_text(columns[0], "COMPLETED");
    row.failed = is_text(columns[0], "FAILED");
    row.retryable = DatumGetBool(columns[1].value);
    row.token = DatumGetInt64(columns[2].value);
    row.attempt = DatumGetInt32(columns[3].value);
    row.deadline = DatumGetTimestampTz(columns[4].value);
    row.expires_at = DatumGetTimestampTz(columns[5].value);
    row.request_hash = copied(columns[6], context);
    row.response = copied(columns[7], context);
    row.result_id = copied(columns[8], context);
    row.checkpoint = copied(columns[9], context);
    row.state = copied(columns[10], context);
    return row;
}

IdempotencyRow read_by_plan(const IdempotencyKey& key, RowLock lock) {
    IdempotencyRow row = {};
    MemoryContext caller = CurrentMemoryContext;
    with_spi([&] {
        PlanShape shape = {idempotency_table(), PlanKind::kIdempotencyRead};
        shape.by_index = true;
        shape.subject = row_lock_number(lock);
        SPIPlanPtr plan = plan_of(shape, [&](Statement* statement) { add_read(statement, lock); });
        Parameters parameters(2);
        parameters.add(key.scope);
        parameters.add(key.key);
        if (run_plan(plan, parameters) == 0)
            return;
        NullableDatum columns[lengthof(kRead)];
        for (size_t i = 0; i < lengthof(kRead); i++)
            columns[i] = column(static_cast<int>(i) + 1);
        row = row_of(columns, caller);
    });
    return row;
}

bool insert_by_plan(const IdempotencyKey& key, NullableDatum request, const ClaimTimes& times,
                    Claim* claim) {
    bool inserted = false;
    with_spi([&] {
        SPIPlanPtr plan = idempotency_plan(PlanKind::kIdempotencyInsert, [](Statement* statement) {
            statement->add(
                "INSERT INTO interlock.idempotency "
                "(scope, key, request_hash, claimed_at, deadline, expires_at) VALUES (");
            const char* separator = "";
            for (Oid type :
                 {TEXTOID, TEXTOID, BYTEAOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID}) {
                statement->add("%s$%d", separator, statement->parameter(type));
                separator = ", ";
            }
            statement->add(") ON CONFLICT (scope, key) DO NOTHING RETURNING token, attempt");
        });
        Parameters parameters(6);
        parameters.add(key.scope);
        parameters.add(key.key);
        parameters.add(request);
        parameters.add(TimestampTzGetDatum(times.claimed_at));
        parameters.add(TimestampTzGetDatum(times.deadline));
        parameters.add(TimestampTzGetDatum(times.expires_at));
        inserted = run_plan(plan, parameters) > 0;
        if (!inserted)
            return;
        claim->token = DatumGetInt64(column(1).value);
        claim->attempt = DatumGetInt32(column(2).value);
    });
    return inserted;
}

bool take_over_by_plan(const IdempotencyKey& key, const Takeover& takeover, Claim* claim) {
    bool taken = false;
    MemoryContext caller = CurrentMemoryContext;
    with_spi([&] {
        SPIPlanPtr plan = idempotency_plan(PlanKind::kIdempotencyTake, [](Statement* statement) {
            statement->add(
                "UPDATE interlock.idempotency SET status = 'PENDING', retryable = false, "
                "response = NULL, response_omitted = false, result_id = NULL, "
                "finished_at = NULL, token = GREATEST(pg_catalog.nextval("
                "'interlock.idempotency_token'::pg_catalog.regclass), token "
                "OPERATOR(pg_catalog.+) 1), attempt = $%d",
                statement->parameter(INT4OID));
            statement->add(", claimed_at = $%d", statement->parameter(TIMESTAMPTZOID));
            statement->add(", deadline = $%d", statement->parameter(TIMESTAMPTZOID));
            statement->add(", expires_at = $%d", statement->parameter(TIMESTAMPTZOID));
            statement->add(", request_hash = COALESCE($%d, CASE WHEN ",
                           statement->parameter(BYTEAOID));
            statement->add("NOT $%d THEN request_hash END)", statement->parameter(BOOLOID));
            int is_fresh = statement->parameter(BOOLOID);
            statement->add(
                ", checkpoint = CASE WHEN NOT $%d THEN checkpoint END, "
                "state = CASE WHEN NOT $%d THEN state END",
                is_fresh, is_fresh);
            statement->add(" WHERE scope OPERATOR(pg_catalog.=) $%d",
                           statement->parameter(TEXTOID));
            statement->add(" AND key OPERATOR(pg_catalog.=) $%d RETURNING token, checkpoint, state",
                           statement->parameter(TEXTOID));
        });
        Parameters parameters(9);
        parameters.add(Int32GetDatum(takeover.attempt));
        parameters.add(TimestampTzGetDatum(takeover.times.claimed_at));
        parameters.add(TimestampTzGetDatum(takeover.times.deadline));
        parameters.add(TimestampTzGetDatum(takeover.times.expires_at));
        parameters.add(takeover.request);
        parameters.add(BoolGetDatum(takeover.forgets_request));
        parameters.add(BoolGetDatum(takeover.forgets_progress));
        parameters.add(key.scope);
        parameters.add(key.key);
        taken = run_plan(plan, parameters) > 0;
        if (!taken)
            return;
        claim->token = DatumGetInt64(column(1).value);
        claim->checkpoint = copied(column(2), caller);
        claim->state = copied(column(3), caller);
    });
    return taken;
}

ClaimTimes times_from_now(const IdempotencyScope& scope) {
    TimestampTz now = GetCurrentTimestamp();
    TimestampTz deadline = now + scope.stale_after;
    return {now, deadline, expiry_after(scope, deadline)};
}

} // namespace

Oid idempotency_table() { return own_table("idempotency"); }

TimestampTz expiry_after(const IdempotencyScope& scope, TimestampTz end) {
    return end + scope.ttl + scope.ttl / 8;
}

IdempotencyRow read_idempotency_row(const IdempotencyKey& key, RowLock lock) {
    IdempotencyRow row = {};
    DirectOutcome direct = read_key_directly(key, lock, [&](const RowValues& stored) {
        NullableDatum columns[lengthof(kRead)];
        for (size_t i = 0; i < lengthof(kRead); i++)
            columns[i] = stored[kRead[i]];
        row = row_of(columns, CurrentMemoryContext);
    });
    if (direct == DirectOutcome::kDeclined) {
        LOCKMODE mode = lock.strength == RowStrength::kNone ? AccessShareLock : RowShareLock;
        with_keys(mode, [&] { row = read_by_plan(key, lock); });
    }
    return row;
}

bool insert_claim(const IdempotencyKey& key, const IdempotencyScope& scope, NullableDatum request,
                  Claim* claim) {
    ClaimTimes times = times_from_now(scope);
    DirectOutcome direct = insert_claim_directly(key, request, times, claim);
    bool inserted = direct == DirectOutcome::kDone;
    if (direct == DirectOutcome::kDeclined)
        with_keys(RowExclusiveLock, [&] { inserted = insert_by_plan(key, request, times, claim); });
    if (inserted)
        note_expiry(times.expires_at);
    return inserted;
}

void take_over(const IdempotencyKey& key, const IdempotencyScope& scope, NullableDatum request,
               const IdempotencyRow& row, bool expired, Claim* claim) {
    Takeover takeover = {times_from_now(scope), expired ? 1 : row.attempt + 1, request, expired,
                         expired || !scope.is_job};
    DirectOutcome direct = take_over_directly(key, takeover, claim);
    bool taken = direct == DirectOutcome::kDone;
    if (direct == DirectOutcome::kDeclined)
        with_keys(RowExclusiveLock, [&] { taken = take_over_by_plan(key, takeover, claim); });
    if (!taken)
        ereport(ERROR, (errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
                        errmsg("a trigger or rule of interlock.idempotency keeps the key from "
                               "being claimed")));
    claim->attempt = takeover.attempt;
    note_expiry(takeover.times.expires_at);
}

} // namespace interlock

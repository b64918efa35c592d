#include "idempotency_table.h"

#include "idempotency_sweep.h"
#include "own_table.h"
#include "sweeper_state.h"

namespace interlock {

namespace {

constexpr IdempotencyScope kDefaults = {false, false, USECS_PER_DAY, USECS_PER_MINUTE, 65536};

int64 microseconds(Datum interval) {
    const Interval* span = DatumGetIntervalP(interval);
    return (span->month * INT64CONST(30) + span->day) * USECS_PER_DAY + span->time;
}

// Column n of the row that SPI returned.
NullableDatum column(int n) {
    NullableDatum result;
    result.value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, n, &result.isnull);
    return result;
}

// A copy that outlives SPI.
NullableDatum kept(NullableDatum value) {
    if (!value.isnull)
        value.value = SPI_datumTransfer(value.value, false, -1);
    return value;
}

void note_expiry(TimestampTz expires_at) { note_deadline(expires_at + kKeySweepGap); }

void add_read(Statement* statement, RowLock lock) {
    statement->add(
        "SELECT status, retryable, token, attempt, deadline, expires_at, request_hash, "
        "response, result_id, checkpoint, state FROM interlock.idempotency "
        "WHERE scope OPERATOR(pg_catalog.=) $%d",
        statement->parameter(TEXTOID));
    statement->add(" AND key OPERATOR(pg_catalog.=) $%d", statement->parameter(TEXTOID));
    add_row_lock(statement, lock);
}

void read_columns(IdempotencyRow* row) {
    char* status = TextDatumGetCString(column(1).value);
    row->found = true;
    row->completed = strcmp(status, "COMPLETED") == 0;
    row->failed = strcmp(status, "FAILED") == 0;
    row->retryable = DatumGetBool(column(2).value);
    row->token = DatumGetInt64(column(3).value);
    row->attempt = DatumGetInt32(column(4).value);
    row->deadline = DatumGetTimestampTz(column(5).value);
    row->expires_at = DatumGetTimestampTz(column(6).value);
    row->request_hash = kept(column(7));
    row->response = kept(column(8));
    row->result_id = kept(column(9));
    row->checkpoint = kept(column(10));
    row->state = kept(column(11));
}

} // namespace

Oid idempotency_table() { return own_table("idempotency"); }

TimestampTz expiry_after(const IdempotencyScope& scope, TimestampTz end) {
    return end + scope.ttl + scope.ttl / 8;
}

IdempotencyScope read_scope(Datum name) {
    IdempotencyScope scope = kDefaults;
    with_spi([&] {
        PlanShape shape = {own_table("idempotency_scope"), PlanKind::kIdempotencyScope};
        SPIPlanPtr plan = plan_of(shape, [](Statement* statement) {
            statement->add(
                "SELECT model OPERATOR(pg_catalog.=) 'job', replay_failures, ttl, "
                "stale_after, max_response_bytes FROM interlock.idempotency_scope "
                "WHERE scope OPERATOR(pg_catalog.=) $%d",
                statement->parameter(TEXTOID));
        });
        Parameters parameters(1);
        parameters.add(name);
        if (run_plan(plan, parameters) == 0)
            return;
        scope.is_job = DatumGetBool(column(1).value);
        scope.replay_failures = DatumGetBool(column(2).value);
        scope.ttl = microseconds(column(3).value);
        scope.stale_after = microseconds(column(4).value);
        scope.max_response_bytes = DatumGetInt32(column(5).value);
    });
    return scope;
}

IdempotencyRow read_idempotency_row(const IdempotencyKey& key, RowLock lock) {
    IdempotencyRow row = {};
    with_spi([&] {
        PlanShape shape = {idempotency_table(), PlanKind::kIdempotencyRead};
        shape.by_index = true;
        shape.subject = row_lock_number(lock);
        SPIPlanPtr plan = plan_of(shape, [&](Statement* statement) { add_read(statement, lock); });
        Parameters parameters(2);
        parameters.add(key.scope);
        parameters.add(key.key);
        if (run_plan(plan, parameters) > 0)
            read_columns(&row);
    });
    return row;
}

bool insert_claim(const IdempotencyKey& key, const IdempotencyScope& scope, NullableDatum request,
                  Claim* claim) {
    bool inserted = false;
    TimestampTz now = GetCurrentTimestamp();
    TimestampTz expires_at = expiry_after(scope, now + scope.stale_after);
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
        parameters.add(TimestampTzGetDatum(now));
        parameters.add(TimestampTzGetDatum(now + scope.stale_after));
        parameters.add(TimestampTzGetDatum(expires_at));
        inserted = run_plan(plan, parameters) > 0;
        if (!inserted)
            return;
        claim->token = DatumGetInt64(column(1).value);
        claim->attempt = DatumGetInt32(column(2).value);
    });
    if (inserted)
        note_expiry(expires_at);
    return inserted;
}

void take_over(const IdempotencyKey& key, const IdempotencyScope& scope, NullableDatum request,
               const IdempotencyRow& row, bool expired, Claim* claim) {
    int32 attempt = expired ? 1 : row.attempt + 1;
    TimestampTz now = GetCurrentTimestamp();
    TimestampTz expires_at = expiry_after(scope, now + scope.stale_after);
    with_spi([&] {
        SPIPlanPtr plan = idempotency_plan(PlanKind::kIdempotencyTake, [](Statement* statement) {
            statement->add(
                "UPDATE interlock.idempotency SET status = 'PENDING', retryable = false, "
                "response = NULL, response_omitted = false, result_id = NULL, "
                "finished_at = NULL, token = pg_catalog.nextval("
                "'interlock.idempotency_token'::pg_catalog.regclass), attempt = $%d",
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
        parameters.add(Int32GetDatum(attempt));
        parameters.add(TimestampTzGetDatum(now));
        parameters.add(TimestampTzGetDatum(now + scope.stale_after));
        parameters.add(TimestampTzGetDatum(expires_at));
        parameters.add(request);
        parameters.add(BoolGetDatum(expired));
        parameters.add(BoolGetDatum(expired || !scope.is_job));
        parameters.add(key.scope);
        parameters.add(key.key);
        if (run_plan(plan, parameters) == 0)
            ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                            errmsg("a row security policy of interlock.idempotency keeps the key "
                                   "from being claimed")));
        claim->token = DatumGetInt64(column(1).value);
        claim->attempt = attempt;
        claim->checkpoint = kept(column(2));
        claim->state = kept(column(3));
    });
    note_expiry(expires_at);
}

} // namespace interlock

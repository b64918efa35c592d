// What the holder of a claim does with it: complete, fail, checkpoint, extend and assert. Each is
// on the condition of the token.

#include "execution/update.h"
#include "idempotency/direct.h"
#include "idempotency/grant.h"
#include "idempotency/table.h"
#include "idempotency/wait.h"
#include "server/arguments.h"

using namespace interlock;

namespace {

// An ending: COMPLETED or FAILED with what is replayed.
struct Ending {
    bool completed;
    bool retryable;
    NullableDatum response; // jsonb
    NullableDatum result_id;
};

void end_claim(const IdempotencyKey& key, int64 token, const Ending& ending);
void write_checkpoint(const IdempotencyKey& key, int64 token, Datum name, NullableDatum state);
TimestampTz extend_claim(const IdempotencyKey& key, int64 token);
void assert_claim(const IdempotencyKey& key, int64 token);

int64 token_argument(const Arguments& arguments, int n) {
    return DatumGetInt64(arguments.required(n, "token"));
}

NullableDatum optional(const Arguments& arguments, int n) {
    return {arguments.is_null(n) ? 0 : arguments.value(n), arguments.is_null(n)};
}

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(idempotency_complete);
PG_FUNCTION_INFO_V1(idempotency_fail);
PG_FUNCTION_INFO_V1(idempotency_checkpoint);
PG_FUNCTION_INFO_V1(idempotency_extend);
PG_FUNCTION_INFO_V1(idempotency_assert);

// idempotency_complete(scope, key, token, response, result_id)
Datum idempotency_complete(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    IdempotencyKey key = idempotency_key_argument(arguments, 0);
    complete_key(key, token_argument(arguments, 2), optional(arguments, 3), optional(arguments, 4));
    PG_RETURN_VOID();
}

// idempotency_fail(scope, key, token, error, retryable)
Datum idempotency_fail(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    IdempotencyKey key = idempotency_key_argument(arguments, 0);
    bool retryable = arguments.boolean(4, "retryable");
    int64 token = token_argument(arguments, 2);
    Ending ending = {false, retryable, optional(arguments, 3), {0, true}};
    using_scope(key.scope, [&] { end_claim(key, token, ending); });
    PG_RETURN_VOID();
}

// idempotency_checkpoint(scope, key, token, name, state)
Datum idempotency_checkpoint(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    IdempotencyKey key = idempotency_key_argument(arguments, 0);
    int64 token = token_argument(arguments, 2);
    Datum name = arguments.required(3, "name");
    NullableDatum state = optional(arguments, 4);
    using_scope(key.scope, [&] { write_checkpoint(key, token, name, state); });
    PG_RETURN_VOID();
}

// idempotency_extend(scope, key, token)
Datum idempotency_extend(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    IdempotencyKey key = idempotency_key_argument(arguments, 0);
    int64 token = token_argument(arguments, 2);
    TimestampTz deadline = 0;
    using_scope(key.scope, [&] { deadline = extend_claim(key, token); });
    PG_RETURN_TIMESTAMPTZ(deadline);
}

// idempotency_assert(scope, key, token)
Datum idempotency_assert(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    IdempotencyKey key = idempotency_key_argument(arguments, 0);
    int64 token = token_argument(arguments, 2);
    using_scope(key.scope, [&] { assert_claim(key, token); });
    PG_RETURN_VOID();
}
}

namespace {

void add_columns(Statement* statement, const Changes& changes) {
    const char* separator = "SET ";
    for (int i = 0; i < changes.count; i++) {
        const MadeColumn& column = kIdempotencyKeys.columns[changes.attnums[i] - 1];
        statement->add("%s%s = $%d", separator, column.name, statement->parameter(column.type));
        separator = ", ";
    }
}

// The expiry moves only when it has become too early.
void add_expiry(Statement* statement) {
    statement->add(", expires_at = CASE WHEN expires_at OPERATOR(pg_catalog.>=) $%d",
                   statement->parameter(TIMESTAMPTZOID));
    statement->add(" THEN expires_at ELSE $%d END", statement->parameter(TIMESTAMPTZOID));
}

void add_condition(Statement* statement) {
    statement->add(" WHERE scope OPERATOR(pg_catalog.=) $%d", statement->parameter(TEXTOID));
    statement->add(" AND key OPERATOR(pg_catalog.=) $%d", statement->parameter(TEXTOID));
    statement->add(" AND token OPERATOR(pg_catalog.=) $%d", statement->parameter(INT8OID));
    statement->add(" AND status OPERATOR(pg_catalog.=) 'PENDING'");
}

bool update_by_plan(PlanKind kind, const IdempotencyKey& key, int64 token, const Expiry& expiry,
                    const Changes& changes) {
    bool updated = false;
    with_spi([&] {
        SPIPlanPtr plan = idempotency_plan(kind, [&](Statement* statement) {
            statement->add("UPDATE interlock.idempotency ");
            add_columns(statement, changes);
            add_expiry(statement);
            add_condition(statement);
        });
        Parameters parameters(changes.count + 5);
        add_changes(&parameters, changes);
        parameters.add(TimestampTzGetDatum(expiry.least));
        parameters.add(TimestampTzGetDatum(expiry.moved));
        parameters.add(key.scope);
        parameters.add(key.key);
        parameters.add(Int64GetDatum(token));
        updated = run_plan(plan, parameters) > 0;
    });
    return updated;
}

// Changes a claim that is still the token's; `kind` tells which columns. False if it is not.
bool update_claim(PlanKind kind, const IdempotencyKey& key, int64 token, const Expiry& expiry,
                  const Changes& changes) {
    DirectOutcome direct = update_claim_directly(key, token, expiry, changes);
    bool updated = direct == DirectOutcome::kDone;
    if (direct == DirectOutcome::kDeclined)
        with_keys(RowExclusiveLock,
                  [&] { updated = update_by_plan(kind, key, token, expiry, changes); });
    return updated;
}

Expiry expiry_of(const IdempotencyScope& scope, TimestampTz end) {
    return {end + scope.ttl, expiry_after(scope, end)};
}

bool is_too_large(const IdempotencyScope& scope, NullableDatum response) {
    return !response.isnull &&
           toast_raw_datum_size(response.value) > static_cast<Size>(scope.max_response_bytes);
}

bool same(NullableDatum left, NullableDatum right, PGFunction equal) {
    if (left.isnull || right.isnull)
        return left.isnull == right.isnull;
    return DatumGetBool(DirectFunctionCall2(equal, left.value, right.value));
}

bool same_text(NullableDatum left, NullableDatum right) {
    if (left.isnull || right.isnull)
        return left.isnull == right.isnull;
    return strcmp(TextDatumGetCString(left.value), TextDatumGetCString(right.value)) == 0;
}

// Whether it has ended like this already: the answer to the first call was lost.
bool ended_like_this(const IdempotencyKey& key, int64 token, const Ending& ending) {
    IdempotencyRow row = read_idempotency_row(key, {});
    return row.found && row.token == token && row.completed == ending.completed &&
           row.failed == !ending.completed && row.retryable == ending.retryable &&
           same(row.response, ending.response, jsonb_eq) &&
           same_text(row.result_id, ending.result_id);
}

void end_claim(const IdempotencyKey& key, int64 token, const Ending& ending) {
    IdempotencyScope scope = read_scope(key.scope);
    Ending stored = ending;
    bool omitted = is_too_large(scope, ending.response);
    if (omitted)
        stored.response = {0, true};
    TimestampTz now = GetCurrentTimestamp();
    Changes changes = extended({}, kState);
    assign(&changes, kStatus, CStringGetTextDatum(ending.completed ? "COMPLETED" : "FAILED"));
    assign(&changes, kRetryable, BoolGetDatum(ending.retryable));
    assign(&changes, kResponse, stored.response);
    assign(&changes, kResponseOmitted, BoolGetDatum(omitted));
    assign(&changes, kResultId, stored.result_id);
    assign(&changes, kFinishedAt, TimestampTzGetDatum(now));
    bool ended =
        update_claim(PlanKind::kIdempotencyEnd, key, token, expiry_of(scope, now), changes);
    if (!ended && !ended_like_this(key, token, stored))
        raise_claim_lost(key, token);
    note_end_of_claim(key);
}

// The deadline moves: who makes progress is alive.
void write_checkpoint(const IdempotencyKey& key, int64 token, Datum name, NullableDatum state) {
    IdempotencyScope scope = read_scope(key.scope);
    if (!scope.is_job)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("idempotency scope \"%s\" has no checkpoints", TextDatumGetCString(key.scope)),
             errhint("Define it with interlock.define_idempotency_scope(..., model => 'job').")));
    TimestampTz deadline = GetCurrentTimestamp() + scope.stale_after;
    Changes changes = extended({}, kState);
    assign(&changes, kCheckpoint, name);
    assign(&changes, kState, state);
    assign(&changes, kDeadline, TimestampTzGetDatum(deadline));
    bool written = update_claim(PlanKind::kIdempotencyCheckpoint, key, token,
                                expiry_of(scope, deadline), changes);
    if (!written)
        raise_claim_lost(key, token);
}

TimestampTz extend_claim(const IdempotencyKey& key, int64 token) {
    IdempotencyScope scope = read_scope(key.scope);
    TimestampTz deadline = GetCurrentTimestamp() + scope.stale_after;
    Changes changes = extended({}, kState);
    assign(&changes, kDeadline, TimestampTzGetDatum(deadline));
    if (!update_claim(PlanKind::kIdempotencyExtend, key, token, expiry_of(scope, deadline),
                      changes))
        raise_claim_lost(key, token);
    return deadline;
}

// The lock keeps everybody from taking the key over until this transaction has ended.
void assert_claim(const IdempotencyKey& key, int64 token) {
    IdempotencyRow row = read_idempotency_row(key, {RowStrength::kNoKeyUpdate});
    if (!row.found || row.token != token || row.completed || row.failed)
        raise_claim_lost(key, token);
    note_end_of_claim(key);
}

} // namespace

namespace interlock {

void complete_key(const IdempotencyKey& key, int64 token, NullableDatum response,
                  NullableDatum result_id) {
    Ending ending = {true, false, response, result_id};
    using_scope(key.scope, [&] { end_claim(key, token, ending); });
}

} // namespace interlock

// What the owner of a claim calls: complete, fail, checkpoint, extend and assert. The condition of
// each is the token.

#include "execution/write.h"
#include "idempotency/grant.h"
#include "idempotency/row.h"
#include "idempotency/table.h"
#include "idempotency/wait.h"
#include "server/arguments.h"

using namespace interlock;

namespace {

// An ending: completed or failed with what is replayed.
struct Ending {
    bool completed;
    bool retryable;
    NullableDatum response; // jsonb
    NullableDatum result_id;
};

void end_claim(const IdempotencyKey& key, int64 token, const Ending& ending);
void write_checkpoint(const IdempotencyKey& key, int64 token, Datum name, NullableDatum state);
bool extend_claim(const IdempotencyKey& key, int64 token, TimestampTz* deadline);
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
    bool held = false;
    using_scope(key.scope, [&] { held = extend_claim(key, token, &deadline); });
    if (!held)
        PG_RETURN_NULL();
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

// Changes a claim that still has the token; false if it has not. `kind` tells which columns
// set(write) sets. The claim ends at `end` unless there is more progress; its expiry moves only
// when it has become too early.
template <typename Set>
bool update_claim(PlanKind kind, const IdempotencyKey& key, int64 token,
                  const IdempotencyScope& scope, TimestampTz end, Set&& set) {
    bool updated = false;
    with_key(key, RowExclusiveLock, [&](const KeyedRow& row) {
        RowWrite write(row, kind);
        write.by_index = true;
        set(&write);
        Expressions& terms = write.terms;
        auto time = [&](TimestampTz value) {
            return terms.value(TIMESTAMPTZOID, TimestampTzGetDatum(value));
        };
        const Expression* expiry = terms.column(kExpiresAt);
        write.set(kExpiresAt, terms.choose(terms.at_least(expiry, time(end + scope.ttl)), expiry,
                                           time(expiry_after(scope, end))));
        write.require(
            terms.equal(terms.column(kToken), terms.value(INT8OID, Int64GetDatum(token))));
        write.require(terms.equal(terms.column(kStatus), terms.literal_text("pending")));
        updated = write_row(write);
    });
    return updated;
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
    auto set = [&](RowWrite* write) {
        write->set(kStatus, write->terms.text(ending.completed ? "completed" : "failed"));
        set_value(write, kRetryable, BoolGetDatum(ending.retryable));
        set_value(write, kResponse, stored.response);
        set_value(write, kResponseOmitted, BoolGetDatum(omitted));
        set_value(write, kResultId, stored.result_id);
        set_value(write, kFinishedAt, TimestampTzGetDatum(now));
    };
    bool ended = update_claim(PlanKind("idempotency_end"), key, token, scope, now, set);
    if (!ended && !ended_like_this(key, token, stored))
        raise_claim_lost(key, token);
    note_end_of_claim(key);
}

// A checkpoint also extends the deadline.
void write_checkpoint(const IdempotencyKey& key, int64 token, Datum name, NullableDatum state) {
    IdempotencyScope scope = read_scope(key.scope);
    if (!scope.is_job)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("idempotency scope \"%s\" has no checkpoints", TextDatumGetCString(key.scope)),
             errhint("Define it with interlock.define_idempotency_scope(..., model => 'job').")));
    TimestampTz deadline = GetCurrentTimestamp() + scope.stale_after;
    auto set = [&](RowWrite* write) {
        set_value(write, kCheckpoint, name);
        set_value(write, kState, state);
        set_value(write, kDeadline, TimestampTzGetDatum(deadline));
    };
    if (!update_claim(PlanKind("idempotency_checkpoint"), key, token, scope, deadline, set))
        raise_claim_lost(key, token);
}

// False if the claim is lost. The caller decides what that means, as for a lease.
bool extend_claim(const IdempotencyKey& key, int64 token, TimestampTz* deadline) {
    IdempotencyScope scope = read_scope(key.scope);
    *deadline = GetCurrentTimestamp() + scope.stale_after;
    auto set = [&](RowWrite* write) {
        set_value(write, kDeadline, TimestampTzGetDatum(*deadline));
    };
    return update_claim(PlanKind("idempotency_extend"), key, token, scope, *deadline, set);
}

// The row lock prevents a takeover until this transaction has ended.
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

// What the owner of a claim calls: complete, fail, checkpoint, extend and assert. The condition of
// each is the token.

#include "execution/write.h"
#include "idempotency/errors.h"
#include "idempotency/grant.h"
#include "idempotency/row.h"
#include "idempotency/storable.h"
#include "idempotency/table.h"
#include "idempotency/wait.h"
#include "server/arguments.h"
#include "server/lone_call.h"

namespace interlock::idempotency {

namespace {

// An ending: completed or failed with what is replayed.
struct Ending {
    bool completed;
    bool retryable;
    Answer answer;
};

} // namespace

static bool end_claim(const IdempotencyKey& key, int64 token, const Ending& ending);
static void write_checkpoint(const IdempotencyKey& key, int64 token, Datum name,
                             NullableDatum state);
static bool extend_claim(const IdempotencyKey& key, int64 token, TimestampTz* deadline);
static void assert_claim(const IdempotencyKey& key, int64 token);

static int64 token_argument(const Arguments& arguments, int n) {
    return DatumGetInt64(arguments.required(n, "token"));
}

extern "C" {
PG_FUNCTION_INFO_V1(idempotency_complete);
PG_FUNCTION_INFO_V1(idempotency_fail);
PG_FUNCTION_INFO_V1(idempotency_checkpoint);
PG_FUNCTION_INFO_V1(idempotency_extend);
PG_FUNCTION_INFO_V1(idempotency_assert);

// idempotency_complete(scope, key, token, response, result_id, body)
Datum idempotency_complete(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    IdempotencyKey key = idempotency_key_argument(arguments, 0);
    Answer answer = {arguments.optional(3), arguments.optional(4), arguments.optional(5)};
    require_short("result_id", answer.result_id);
    PG_RETURN_BOOL(complete_key(key, token_argument(arguments, 2), answer));
}

// idempotency_fail(scope, key, token, error, retryable)
Datum idempotency_fail(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    IdempotencyKey key = idempotency_key_argument(arguments, 0);
    bool retryable = arguments.boolean(4, "retryable");
    int64 token = token_argument(arguments, 2);
    constexpr NullableDatum kNull = {0, true};
    Ending ending = {false, retryable, {arguments.optional(3), kNull, kNull}};
    using_scope(key.scope, [&] { (void)end_claim(key, token, ending); });
    PG_RETURN_VOID();
}

// idempotency_checkpoint(scope, key, token, name, state)
Datum idempotency_checkpoint(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    IdempotencyKey key = idempotency_key_argument(arguments, 0);
    int64 token = token_argument(arguments, 2);
    Datum name = arguments.required(3, "name");
    NullableDatum state = arguments.optional(4);
    require_short("name", {name, false});
    require_small("state", state);
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
    warn_if_routed(fcinfo, "the claim is no longer asserted",
                   "Call the function in the transaction that writes.");
    PG_RETURN_VOID();
}
}

// Changes a claim that still has the token; false if it has not. set(write, scope), of which `kind`
// tells the columns, returns when the claim ends unless there is more progress; its expiry moves
// only when it has become too early. `own`: for claims with times of their own, which others are
// not.
template <typename Set>
static bool write_claim(PlanKind kind, bool own, const IdempotencyKey& key, int64 token,
                        const IdempotencyScope& scope, Set&& set) {
    bool updated = false;
    with_key(key, RowExclusiveLock, [&](const KeyedRow& row) {
        RowWrite write(row, kind);
        write.by_index = true;
        write.variant = own ? 1 : 0;
        TimestampTz end = set(&write, scope);
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
        if (!own)
            for (AttrNumber column : {kOwnTtl, kOwnStaleAfter})
                write.require(terms.is_null(terms.column(column)));
        updated = write_row(write);
    });
    return updated;
}

template <typename Set>
static bool update_claim(PlanKind kind, const IdempotencyKey& key, int64 token,
                         const IdempotencyScope& scope, Set&& set) {
    if (write_claim(kind, false, key, token, scope, set))
        return true;
    IdempotencyRow row = read_idempotency_row(key, {});
    if (!row.found || row.token != token || (row.ttl == nullptr && row.stale_after == nullptr))
        return false;
    return write_claim(kind, true, key, token, with_own_times(scope, row.ttl, row.stale_after),
                       set);
}

// Response and body are kept together or not at all.
static bool is_too_large(const IdempotencyScope& scope, const Answer& answer) {
    int64 size = answer.response.isnull ? 0 : toast_raw_datum_size(answer.response.value);
    if (!answer.body.isnull)
        size += toast_raw_datum_size(answer.body.value) - VARHDRSZ;
    return size > scope.max_response_bytes;
}

static bool same(NullableDatum left, NullableDatum right, PGFunction equal) {
    if (left.isnull || right.isnull)
        return left.isnull == right.isnull;
    return DatumGetBool(DirectFunctionCall2(equal, left.value, right.value));
}

static bool same_text(NullableDatum left, NullableDatum right) {
    if (left.isnull || right.isnull)
        return left.isnull == right.isnull;
    return strcmp(TextDatumGetCString(left.value), TextDatumGetCString(right.value)) == 0;
}

// Whether it has ended like this already: the answer to the first call was lost.
static bool ended_like_this(const IdempotencyKey& key, int64 token, const Ending& ending,
                            bool omitted) {
    IdempotencyRow row = read_idempotency_row(key, {});
    return row.found && row.token == token && row.completed == ending.completed &&
           row.failed == !ending.completed && row.retryable == ending.retryable &&
           row.response_omitted == omitted &&
           same(row.response, ending.answer.response, jsonb_eq) &&
           same(row.body, ending.answer.body, byteaeq) &&
           same_text(row.result_id, ending.answer.result_id);
}

// False when the answer is too large to be kept.
static bool end_claim(const IdempotencyKey& key, int64 token, const Ending& ending) {
    IdempotencyScope scope = read_scope(key.scope);
    Ending stored = ending;
    bool omitted = is_too_large(scope, ending.answer);
    if (omitted)
        stored.answer.response = stored.answer.body = {0, true};
    require_readable(ending.completed ? "response" : "error", stored.answer.response);
    TimestampTz now = GetCurrentTimestamp();
    auto set = [&](RowWrite* write, const IdempotencyScope&) {
        write->set(kStatus, write->terms.text(ending.completed ? "completed" : "failed"));
        set_value(write, kRetryable, BoolGetDatum(ending.retryable));
        set_value(write, kResponse, stored.answer.response);
        set_value(write, kResponseOmitted, BoolGetDatum(omitted));
        set_value(write, kResultId, stored.answer.result_id);
        set_value(write, kFinishedAt, TimestampTzGetDatum(now));
        if (!stored.answer.body.isnull) // a claim has none
            set_value(write, kBody, stored.answer.body);
        return now;
    };
    bool ended = update_claim(PlanKind("idempotency_end"), key, token, scope, set);
    if (!ended && !ended_like_this(key, token, stored, omitted))
        raise_claim_lost(key, token);
    note_end_of_claim(key);
    return !omitted;
}

// A checkpoint also extends the deadline.
static void write_checkpoint(const IdempotencyKey& key, int64 token, Datum name,
                             NullableDatum state) {
    IdempotencyScope scope = read_scope(key.scope);
    if (!scope.is_job)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("idempotency scope \"%s\" has no checkpoints", TextDatumGetCString(key.scope)),
             errhint("Define it with interlock.define_idempotency_scope(..., model => 'job').")));
    TimestampTz now = GetCurrentTimestamp();
    auto set = [&](RowWrite* write, const IdempotencyScope& times) {
        TimestampTz deadline = now + times.stale_after;
        set_value(write, kCheckpoint, name);
        set_value(write, kState, state);
        set_value(write, kDeadline, TimestampTzGetDatum(deadline));
        return deadline;
    };
    if (!update_claim(PlanKind("idempotency_checkpoint"), key, token, scope, set))
        raise_claim_lost(key, token);
}

// False if the claim is lost. The caller decides what that means, as for a lease.
static bool extend_claim(const IdempotencyKey& key, int64 token, TimestampTz* deadline) {
    IdempotencyScope scope = read_scope(key.scope);
    TimestampTz now = GetCurrentTimestamp();
    auto set = [&](RowWrite* write, const IdempotencyScope& times) {
        *deadline = now + times.stale_after;
        set_value(write, kDeadline, TimestampTzGetDatum(*deadline));
        return *deadline;
    };
    return update_claim(PlanKind("idempotency_extend"), key, token, scope, set);
}

// The row lock prevents a takeover until this transaction has ended.
static void assert_claim(const IdempotencyKey& key, int64 token) {
    IdempotencyRow row = read_idempotency_row(key, {RowStrength::kNoKeyUpdate});
    if (!row.found || row.token != token || row.completed || row.failed)
        raise_claim_lost(key, token);
    note_end_of_claim(key);
}

bool complete_key(const IdempotencyKey& key, int64 token, const Answer& answer) {
    Ending ending = {true, false, answer};
    bool kept = false;
    using_scope(key.scope, [&] { kept = end_claim(key, token, ending); });
    return kept;
}

} // namespace interlock::idempotency

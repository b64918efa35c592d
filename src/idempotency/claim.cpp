#include "idempotency/idempotency.h"

#include "idempotency/grant.h"
#include "idempotency/storable.h"
#include "idempotency/table.h"
#include "idempotency/wait.h"
#include "key_lock/mode.h"
#include "key_lock/wait.h"
#include "server/arguments.h"
#include "server/result_row.h"
#include "server/subtransaction.h"
#include "server/wait_log.h"

namespace interlock::idempotency {

static ClaimRequest request_argument(const Arguments& arguments);
static Datum claim_result(FunctionCallInfo fcinfo, const Claim& claim);

extern "C" {
PG_FUNCTION_INFO_V1(idempotency_claim);

// idempotency_claim(scope, key, request, wait, request_hash, ttl, stale_after, state)
Datum idempotency_claim(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    IdempotencyKey key = idempotency_key_argument(arguments, 0);
    ClaimRequest request = request_argument(arguments);
    Deadline wait = Deadline::argument(arguments, 3);
    return claim_result(fcinfo, claim_key(key, request, wait));
}
}

constexpr NullableDatum kNull = {0, true};

// A request, or the hash that the client has made of it.
static NullableDatum request_hash_argument(const Arguments& arguments, int request, int hash) {
    constexpr int kMostBytes = 64; // of SHA-512
    if (arguments.is_null(hash))
        return hash_request(arguments.jsonb_or_null(request));
    if (!arguments.is_null(request))
        refuse_argument("request_hash", "must be null where \"request\" is given",
                        "Give the request, or its hash.");
    bytea* given = DatumGetByteaPP(arguments.value(hash));
    if (VARSIZE_ANY_EXHDR(given) == 0)
        refuse_empty("request_hash");
    if (VARSIZE_ANY_EXHDR(given) > kMostBytes)
        refuse_long("request_hash", kMostBytes, "Give a digest, for example sha256(body).");
    return {PointerGetDatum(given), false};
}

static const Interval* span_argument(const Arguments& arguments, int n, const char* name) {
    return arguments.is_null(n) ? nullptr : duration_to_store(arguments.interval(n, name), name);
}

static ClaimRequest request_argument(const Arguments& arguments) {
    require_small("state", arguments.optional(7));
    return {request_hash_argument(arguments, 2, 4), span_argument(arguments, 5, "ttl"),
            span_argument(arguments, 6, "stale_after"), arguments.optional(7)};
}

// outcome, token, attempt, response, result_id, checkpoint, state, body, has_response, deadline
static Datum claim_result(FunctionCallInfo fcinfo, const Claim& claim) {
    bool acquired = claim.outcome == ClaimOutcome::kAcquired;
    bool open = acquired || claim.outcome == ClaimOutcome::kInProgress ||
                claim.outcome == ClaimOutcome::kMismatch;
    Datum values[10] = {CStringGetTextDatum(outcome_name(claim.outcome)),
                        Int64GetDatum(claim.token),
                        Int32GetDatum(claim.attempt),
                        claim.response.value,
                        claim.result_id.value,
                        claim.checkpoint.value,
                        claim.state.value,
                        claim.body.value,
                        BoolGetDatum(claim.has_response),
                        TimestampTzGetDatum(claim.deadline)};
    bool nulls[10] = {false,
                      !acquired,
                      claim.attempt == 0,
                      claim.response.isnull,
                      claim.result_id.isnull,
                      claim.checkpoint.isnull,
                      claim.state.isnull,
                      claim.body.isnull,
                      open,
                      claim.deadline == 0};
    return result_row(fcinfo, values, nulls);
}

static Datum checked_name(Datum value, const char* name, size_t limit) {
    size_t length = VARSIZE_ANY_EXHDR(DatumGetTextPP(value));
    if (length == 0)
        refuse_empty(name);
    if (length > limit)
        refuse_long(name, limit, psprintf("Give a digest of it, for example md5(%s).", name));
    return value;
}

// --- What a row means to a claim -----------------------------------------------------------------

namespace {

enum class Standing { kFree, kReplay, kFailed, kRunning, kMismatch, kExhausted };

} // namespace

static bool same_request(NullableDatum left, NullableDatum right) {
    return left.isnull || right.isnull ||
           DatumGetBool(DirectFunctionCall2(byteaeq, left.value, right.value));
}

// Of a key that another attempt may follow.
static Standing next_attempt(const IdempotencyRow& row, const IdempotencyScope& scope) {
    bool is_last = scope.max_attempts > 0 && row.attempt >= scope.max_attempts;
    return is_last ? Standing::kExhausted : Standing::kFree;
}

static Standing standing(const IdempotencyRow& row, const IdempotencyScope& scope,
                         NullableDatum request) {
    if (!row.found)
        return Standing::kFree;
    TimestampTz now = GetCurrentTimestamp();
    if (row.expires_at <= now)
        return Standing::kFree;
    if (!same_request(row.request_hash, request))
        return Standing::kMismatch;
    if (row.completed)
        return Standing::kReplay;
    if (row.failed)
        return row.retryable && !scope.replay_failures ? next_attempt(row, scope)
                                                       : Standing::kFailed;
    return row.deadline > now ? Standing::kRunning : next_attempt(row, scope);
}

static Claim no_claim(ClaimOutcome outcome, int32 attempt) {
    return {outcome, 0, attempt, kNull, kNull, false, kNull, kNull, kNull, 0};
}

static Claim not_acquired(ClaimOutcome outcome, const IdempotencyRow& row) {
    Claim claim = no_claim(outcome, row.attempt);
    if (outcome == ClaimOutcome::kInProgress || outcome == ClaimOutcome::kMismatch)
        return claim;
    claim.response = row.response;
    claim.body = row.body;
    claim.has_response = has_response(row);
    claim.result_id = row.result_id;
    if (outcome != ClaimOutcome::kExhausted)
        return claim;
    claim.checkpoint = row.checkpoint;
    claim.state = row.state;
    return claim;
}

static ClaimOutcome outcome_of(Standing standing) {
    switch (standing) {
    case Standing::kReplay:
        return ClaimOutcome::kReplay;
    case Standing::kFailed:
        return ClaimOutcome::kFailed;
    case Standing::kMismatch:
        return ClaimOutcome::kMismatch;
    case Standing::kExhausted:
        return ClaimOutcome::kExhausted;
    default:
        return ClaimOutcome::kInProgress;
    }
}

// --- Claiming ------------------------------------------------------------------------------------

// Between scope and key in the name of their lock.
constexpr char kSeparator = '\n';

namespace {

struct Call {
    IdempotencyKey key;
    IdempotencyScope scope;
    ClaimRequest request;
    key_lock::LockRequest lock;
    TimestampTz running_until; // the deadline of the claim in the way, zero if it is not known
    bool is_row_locked;        // another transaction is about to change the row
    bool has_waited;
};

} // namespace

// Locks the row and takes it over if that is allowed. Else the lock is rolled back: the owner of
// the claim must not wait for a client that only asks. Not found: another transaction has locked
// it.
static IdempotencyRow lock_and_take_over(Call* call, Claim* claim, Standing* found) {
    IdempotencyRow row = {};
    ErrorData* error = attempt_if([&] {
        row = read_idempotency_row(call->key, {RowStrength::kNoKeyUpdate, RowWait::kSkipLocked});
        *found = row.found ? standing(row, call->scope, call->request.hash) : Standing::kRunning;
        if (*found != Standing::kFree)
            return false;
        bool expired = row.expires_at <= GetCurrentTimestamp();
        if (!expired)
            count(line_of(call->key), row.failed ? Counter::kRetries : Counter::kTakeovers);
        take_over(call->key, call->scope, call->request, row, expired, claim);
        return true;
    });
    if (error != nullptr)
        ReThrowError(error);
    return row;
}

// With the lock: no other claim of the key is under way, but its row may be locked by a transaction
// that completes or asserts it.
static Claim claim_locked(Call* call) {
    Claim claim = no_claim(ClaimOutcome::kAcquired, 0);
    IdempotencyRow row = read_idempotency_row(call->key, {});
    Standing found = standing(row, call->scope, call->request.hash);
    if (row.found && found == Standing::kFree) {
        row = lock_and_take_over(call, &claim, &found);
        if (found == Standing::kFree)
            return claim;
        if (!row.found) // locked, or deleted by now
            row = read_idempotency_row(call->key, {});
        call->is_row_locked = row.found;
    }
    // Only when there is none: the index would wait for a transaction that is completing it.
    if (!row.found && insert_claim(call->key, call->scope, call->request, &claim))
        return claim;
    call->running_until = row.deadline;
    return not_acquired(found == Standing::kFree ? ClaimOutcome::kInProgress : outcome_of(found),
                        row);
}

// Whether the claim that is not committed is for another request. It may be rolled back, but its
// client has used the key for two requests then, too.
static bool is_mismatch_uncommitted(const Call& call) {
    NullableDatum hash;
    return !call.request.hash.isnull && read_uncommitted_hash(call.key, &hash) &&
           !same_request(hash, call.request.hash);
}

// Without the lock another transaction is claiming the key, or has claimed it and is not committed.
static Claim look_only(Call* call) {
    IdempotencyRow row = read_idempotency_row(call->key, {});
    Standing found = standing(row, call->scope, call->request.hash);
    if (found == Standing::kFree && is_mismatch_uncommitted(*call))
        found = Standing::kMismatch;
    call->running_until = found == Standing::kRunning ? row.deadline : 0;
    return not_acquired(outcome_of(found), row);
}

// Whether the row has changed since the snapshot: 40001 if so. Waits for the transaction that has
// locked it. Returns whether the deadline was met; locks nothing.
static bool wait_for_row(const Call& call, const Deadline& wait) {
    if (XactReadOnly)
        return true;
    RowLock lock = {RowStrength::kNoKeyUpdate,
                    wait.has_passed() ? RowWait::kSkipLocked : RowWait::kWait};
    ErrorData* error = attempt_if([&] {
        wait.bound([&] { (void)read_idempotency_row(call.key, lock); });
        CHECK_FOR_INTERRUPTS();
        return false;
    });
    if (error != nullptr && error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
        ReThrowError(error);
    return error == nullptr;
}

static Claim try_claim(Call* call, const Deadline& wait) {
    call->running_until = 0;
    call->is_row_locked = false;
    ErrorData* error;
    if (key_lock::acquire(call->lock, key_lock::LockScope::kTransaction, wait, &error) ==
        key_lock::Grant::kRefused) {
        if (error != nullptr && error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
            ReThrowError(error);
        return look_only(call);
    }
    Claim claim = claim_locked(call);
    if (claim.outcome != ClaimOutcome::kAcquired)
        key_lock::give_back(call->lock, key_lock::LockScope::kTransaction);
    return claim;
}

// Until the deadline of the claim in the way. A short sleep when another transaction has locked the
// row again, to avoid a busy loop.
static int64 longest_sleep(const Call& call, const Deadline& wait) {
    constexpr int64 kMoment = 20;
    int64 left = wait.is_never() ? PG_INT32_MAX : wait.left_in_milliseconds();
    if (call.is_row_locked || call.running_until == 0)
        return Min(left, kMoment);
    return Min(left,
               TimestampDifferenceMilliseconds(GetCurrentTimestamp(), call.running_until) + 1);
}

static void log_claim_wait(WaitLog* log, const Call& call) {
    const char* detail = nullptr;
    if (call.running_until != 0)
        detail = psprintf("It is claimed until %s.", timestamptz_to_str(call.running_until));
    log->write(psprintf("idempotency key \"%s\"", claim_name(call.key)), detail);
}

// Waits for an uncommitted claim by the lock on the name, and for a change of the row by the row
// lock: the lock manager sees both. A claim that is committed is waited for without them, until it
// ends or its deadline is over.
static Claim claim_waiting(Call* call, const Deadline& wait) {
    TimestampTz began = GetCurrentTimestamp();
    WaitLog log;
    // A wait can be ended very often, also for other keys.
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "waiting claim", ALLOCSET_SMALL_SIZES);
    for (;; MemoryContextReset(memory)) {
        CHECK_FOR_INTERRUPTS();
        bool in_time = in_context(memory, [&] { return wait_for_row(*call, wait); });
        prepare_to_wait(call->key); // after it: the end of a subtransaction ends a wait
        Claim claim = in_context(memory, [&] { return try_claim(call, wait); });
        if (claim.outcome != ClaimOutcome::kInProgress || !in_time || wait.has_passed()) {
            end_wait();
            log.write_end(psprintf("idempotency key \"%s\"", claim_name(call->key)),
                          claim.outcome == ClaimOutcome::kAcquired);
            return claim;
        }
        if (log.is_due())
            log_claim_wait(&log, *call);
        wait_for_end_of_claim(call->key, {began, call->running_until},
                              log.shorten(longest_sleep(*call, wait)));
    }
}

// The scope with the times of the claim itself.
static IdempotencyScope scope_for(const IdempotencyKey& key, const ClaimRequest& request) {
    IdempotencyScope scope = read_scope(key.scope);
    if (request.ttl != nullptr && microseconds(request.ttl) > scope.ttl)
        refuse_argument("ttl", "must not be longer than that of the scope",
                        "interlock.define_idempotency_scope() defines how long keys are kept.");
    // It keeps others from the key, with an answer or without.
    if (request.stale_after != nullptr &&
        microseconds(request.stale_after) > Max(scope.ttl, scope.stale_after))
        refuse_argument("stale_after",
                        "must not be longer than the longer of the scope's ttl and stale_after",
                        "interlock.define_idempotency_scope() defines how long claims live.");
    return with_own_times(scope, request.ttl, request.stale_after);
}

static void count_claim(const Call& call, ClaimOutcome outcome) {
    LineRef line = line_of(call.key);
    count(line, Counter::kCalls);
    switch (outcome) {
    case ClaimOutcome::kAcquired:
        break;
    case ClaimOutcome::kReplay:
    case ClaimOutcome::kFailed:
        count(line, Counter::kReplays);
        break;
    case ClaimOutcome::kMismatch:
        count(line, Counter::kMismatches);
        break;
    case ClaimOutcome::kInProgress:
        count(line, call.has_waited ? Counter::kTimeouts : Counter::kConflicts);
        break;
    case ClaimOutcome::kExhausted:
        count(line, Counter::kRefusals);
        break;
    }
}

static Claim claim_granted(const IdempotencyKey& key, const ClaimRequest& request,
                           const Deadline& wait) {
    Call call = {
        key,  scope_for(key, request), request, {lock_name_of(key), key_lock::kExclusive}, 0, false,
        false};
    bool may_wait = !wait.has_passed() && !is_claimed_here(key);
    const Deadline at_once = Deadline::after_milliseconds(0);
    Claim claim = try_claim(&call, at_once);
    if (claim.outcome == ClaimOutcome::kInProgress && may_wait) {
        call.has_waited = true;
        claim = count_waiting(line_of(key), [&] { return claim_waiting(&call, wait); });
    }
    if (claim.outcome == ClaimOutcome::kInProgress && IsolationUsesXactSnapshot())
        (void)wait_for_row(call, at_once);
    if (claim.outcome == ClaimOutcome::kInProgress && call.running_until > GetCurrentTimestamp())
        claim.deadline = call.running_until;
    count_claim(call, claim.outcome);
    return claim;
}

bool is_free(const IdempotencyRow& row, const IdempotencyScope& scope) {
    return standing(row, scope, kNull) == Standing::kFree;
}

const char* outcome_name(ClaimOutcome outcome) {
    constexpr const char* names[] = {"acquired", "replay", "in_progress",
                                     "mismatch", "failed", "exhausted"};
    return names[static_cast<int>(outcome)];
}

Datum scope_argument(const Arguments& arguments, int n) {
    Datum scope = checked_name(arguments.required(n, "scope"), "scope", kMaxScopeBytes);
    const text* bytes = DatumGetTextPP(scope);
    if (memchr(VARDATA_ANY(bytes), kSeparator, VARSIZE_ANY_EXHDR(bytes)) != nullptr)
        refuse_argument("scope", "must not contain a line break");
    return scope;
}

IdempotencyKey idempotency_key_argument(const Arguments& arguments, int n) {
    Datum scope = scope_argument(arguments, n);
    return {scope, checked_name(arguments.required(n + 1, "key"), "key", kMaxIdempotencyKeyBytes)};
}

key_lock::LockName lock_name_of(const IdempotencyKey& key) {
    const text* scope = DatumGetTextPP(key.scope);
    const text* name = DatumGetTextPP(key.key);
    StringInfoData bytes;
    initStringInfo(&bytes);
    appendBinaryStringInfo(&bytes, VARDATA_ANY(scope), VARSIZE_ANY_EXHDR(scope));
    appendStringInfoChar(&bytes, kSeparator);
    appendBinaryStringInfo(&bytes, VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
    return {key_lock::KeySpace::kIdempotency, bytes.data, static_cast<size_t>(bytes.len),
            key_lock::hash_name(bytes.data, bytes.len)};
}

LineRef line_of(const IdempotencyKey& key) {
    const text* scope = DatumGetTextPP(key.scope);
    return line_of_scope({VARDATA_ANY(scope), static_cast<size_t>(VARSIZE_ANY_EXHDR(scope))});
}

bool is_claimed_here(const IdempotencyKey& key) {
    const key_lock::NamedLock* lock = key_lock::find_lock(lock_name_of(key));
    return lock != nullptr && key_lock::held_modes(lock) != 0;
}

Claim claim_key(const IdempotencyKey& key, const ClaimRequest& request, const Deadline& wait) {
    Claim claim = {};
    using_scope(key.scope, [&] { claim = claim_granted(key, request, wait); });
    return claim;
}

} // namespace interlock::idempotency

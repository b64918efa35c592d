// idempotency_lookup: what is known of a key, without claiming it. Not the token, which proves a
// claim.

#include "execution/read.h"
#include "idempotency/grant.h"
#include "idempotency/row.h"
#include "idempotency/table.h"
#include "key_lock/list.h"
#include "key_lock/mode.h"
#include "server/arguments.h"
#include "server/result_row.h"

namespace interlock::idempotency {

// What is read, in this order; those before kStatus are returned as they are.
constexpr AttrNumber kShown[] = {kAttempt, kRetryable, kResponse,       kResultId,   kCheckpoint,
                                 kState,   kClaimedAt, kDeadline,       kFinishedAt, kExpiresAt,
                                 kBody,    kStatus,    kResponseOmitted};

namespace {

enum ShownPlace { kShownDeadline = 7, kShownExpiry = 9, kShownBody, kShownStatus, kShownOmitted };

} // namespace

static bool read_key(const IdempotencyKey& key, NullableDatum* columns);
static bool is_being_claimed(const IdempotencyKey& key);
static const char* status_of(const NullableDatum* columns);

extern "C" {
PG_FUNCTION_INFO_V1(idempotency_lookup);

// idempotency_lookup(scope, key)
Datum idempotency_lookup(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    IdempotencyKey key = idempotency_key_argument(arguments, 0);
    NullableDatum columns[lengthof(kShown)];
    bool found = false;
    bool is_claimed = false;
    using_scope(key.scope, [&] {
        is_claimed = is_being_claimed(key);
        found = !is_claimed && read_key(key, columns);
    });
    // status, has_response, then the columns
    Datum values[2 + kShownStatus] = {};
    bool nulls[2 + kShownStatus];
    memset(nulls, true, sizeof(nulls));
    nulls[0] = !found && !is_claimed;
    if (!nulls[0])
        values[0] = CStringGetTextDatum(is_claimed ? "pending" : status_of(columns));
    if (!found)
        return result_row(fcinfo, values, nulls);
    bool has_answer = !columns[2].isnull || !columns[kShownBody].isnull;
    values[1] = BoolGetDatum(has_answer || DatumGetBool(columns[kShownOmitted].value));
    nulls[1] = is_text(columns[kShownStatus], "pending");
    for (int i = 0; i < kShownStatus; i++) {
        values[2 + i] = columns[i].value;
        nulls[2 + i] = columns[i].isnull;
    }
    return result_row(fcinfo, values, nulls);
}
}

// Of a key that has not expired.
static bool read_key(const IdempotencyKey& key, NullableDatum* columns) {
    bool found = false;
    with_key(key, AccessShareLock, [&](const KeyedRow& row) {
        found = read_row({row, PlanKind("idempotency_look"), kShown, lengthof(kShown), {}, true},
                         columns);
    });
    return found && DatumGetTimestampTz(columns[kShownExpiry].value) > GetCurrentTimestamp() &&
           DatumGetTimestampTz(columns[kShownDeadline].value) != kPostponedDeadline;
}

// By a transaction that is not committed. The lock is looked at first: what is committed after that
// is in the row.
static bool is_being_claimed(const IdempotencyKey& key) {
    return key_lock::is_held_by_others(lock_name_of(key), key_lock::kExclusive) &&
           is_free(read_idempotency_row(key, {}), read_scope(key.scope));
}

// As the table has it, but stale for a claim that the next one takes over.
static const char* status_of(const NullableDatum* columns) {
    if (!is_text(columns[kShownStatus], "pending"))
        return TextDatumGetCString(columns[kShownStatus].value);
    TimestampTz deadline = DatumGetTimestampTz(columns[kShownDeadline].value);
    return deadline > GetCurrentTimestamp() ? "pending" : "stale";
}

} // namespace interlock::idempotency

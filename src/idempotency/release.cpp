// What gives a key back: idempotency_release, by the owner of the claim, and idempotency_forget, by
// an operator. Neither deletes the row, which other tables may reference: it expires at once, and a
// claim of an expired key begins again.

#include "execution/write.h"
#include "idempotency/grant.h"
#include "idempotency/row.h"
#include "idempotency/table.h"
#include "idempotency/wait.h"
#include "key_lock/mode.h"
#include "key_lock/wait.h"
#include "server/arguments.h"
#include "server/error.h"
#include "table/restricted.h"
#include "table/subscription.h"

namespace interlock::idempotency {

static bool release_claim(const IdempotencyKey& key, int64 token);
static bool forget_key(const IdempotencyKey& key, const char* reason, bool force);

extern "C" {
PG_FUNCTION_INFO_V1(idempotency_release);
PG_FUNCTION_INFO_V1(idempotency_forget);

// idempotency_release(scope, key, token)
Datum idempotency_release(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    IdempotencyKey key = idempotency_key_argument(arguments, 0);
    int64 token = DatumGetInt64(arguments.required(2, "token"));
    bool released = false;
    using_scope(key.scope, [&] { released = release_claim(key, token); });
    PG_RETURN_BOOL(released);
}

// idempotency_forget(scope, key, reason, force)
Datum idempotency_forget(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    IdempotencyKey key = idempotency_key_argument(arguments, 0);
    const char* reason = arguments.string(2, "reason");
    if (*reason == '\0')
        refuse_empty("reason", "It is stored in interlock.idempotency_audit.");
    bool force = arguments.boolean(3, "force");
    bool forgotten = false;
    using_scope(key.scope, [&] { forgotten = forget_key(key, reason, force); });
    PG_RETURN_BOOL(forgotten);
}
}

static void end_now(RowWrite* write, TimestampTz now) {
    Expressions& terms = write->terms;
    // The holder of the old token is fenced off, as by a takeover.
    write->set(kToken, terms.greatest(terms.next_number("idempotency_token"),
                                      terms.successor(terms.column(kToken))));
    set_value(write, kDeadline, TimestampTzGetDatum(now));
}

static void expire_now(RowWrite* write, TimestampTz now) {
    end_now(write, now);
    set_value(write, kExpiresAt, TimestampTzGetDatum(now));
}

// Writes the row, which the caller has locked.
template <typename Set>
static void write_locked(PlanKind kind, AttrNumber variant, const IdempotencyKey& key, Set&& set) {
    bool written = false;
    with_key(key, RowExclusiveLock, [&](const KeyedRow& row) {
        RowWrite write(row, kind);
        write.by_index = true;
        write.variant = variant;
        set(&write);
        written = write_row(write);
    });
    if (!written)
        raise_suppressed_claim();
}

// As the key was before the claim: never claimed, or left by an earlier attempt, whose effect is
// not known, for the next one.
static bool release_claim(const IdempotencyKey& key, int64 token) {
    IdempotencyRow row = read_idempotency_row(key, {RowStrength::kNoKeyUpdate});
    if (!row.found || row.token != token || row.completed || row.failed)
        return false;
    bool is_first = row.attempt <= 1;
    TimestampTz now = GetCurrentTimestamp();
    write_locked(PlanKind("idempotency_release"), is_first ? 1 : 0, key, [&](RowWrite* write) {
        if (is_first)
            return expire_now(write, now);
        end_now(write, now);
        set_value(write, kAttempt, Int32GetDatum(row.attempt - 1));
    });
    if (is_first)
        note_expiry(now);
    note_end_of_claim(key);
    return true;
}

// --- By an operator ------------------------------------------------------------------------------

[[noreturn]] static void refuse_claimed(const IdempotencyKey& key, const char* hint) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                    errmsg("idempotency key \"%s\" is claimed", TextDatumGetCString(key.key)),
                    errhint("%s", hint)));
}

[[noreturn]] static void refuse_used(const IdempotencyKey& key) {
    refuse_claimed(key, "A transaction claims or asserts it. Wait for its end, or end it.");
}

[[noreturn]] static void refuse_running(const IdempotencyKey& key) {
    refuse_claimed(key,
                   "Wait for the end of the claim or for its deadline, which "
                   "interlock.idempotency_lookup() returns, or take it from its owner with "
                   "force => true.");
}

// The row, locked; 55006 when a transaction uses the key, and when a claim of it is running unless
// by force.
static IdempotencyRow lock_to_forget(const IdempotencyKey& key, bool force) {
    const Deadline at_once = Deadline::after_milliseconds(0);
    ErrorData* error;
    if (key_lock::acquire({lock_name_of(key), key_lock::kExclusive},
                          key_lock::LockScope::kTransaction, at_once,
                          &error) == key_lock::Grant::kRefused)
        refuse_used(key);
    IdempotencyRow row =
        read_idempotency_row(key, {RowStrength::kNoKeyUpdate, RowWait::kSkipLocked});
    if (!row.found && read_idempotency_row(key, {}).found)
        refuse_used(key);
    TimestampTz now = GetCurrentTimestamp();
    bool runs = row.found && !row.completed && !row.failed && row.deadline > now;
    if (runs && row.expires_at > now && !force)
        refuse_running(key);
    return row;
}

static void audit_forget(const IdempotencyKey& key, const IdempotencyRow& row, const char* reason) {
    const char* status = row.completed ? "completed" : row.failed ? "failed" : "pending";
    Oid types[6] = {TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID, TEXTOID};
    Datum values[6] = {CStringGetTextDatum(GetUserNameFromId(GetUserId(), false)),
                       key.scope,
                       key.key,
                       Int32GetDatum(row.attempt),
                       CStringGetTextDatum(status),
                       CStringGetTextDatum(reason)};
    write_own_table("idempotency_audit", TRIGGER_TYPE_INSERT,
                    insert_of_line(own_table("idempotency_audit"),
                                   "forgotten_by, scope, key, attempt, status, reason", 6),
                    6, types, values);
}

static bool forget_key(const IdempotencyKey& key, const char* reason, bool force) {
    IdempotencyRow row = lock_to_forget(key, force);
    TimestampTz now = GetCurrentTimestamp();
    if (!row.found || (row.expires_at <= now && row.deadline != kPostponedDeadline)) {
        key_lock::give_back({lock_name_of(key), key_lock::kExclusive},
                            key_lock::LockScope::kTransaction);
        return false;
    }
    write_locked(PlanKind("idempotency_forget"), 0, key, [&](RowWrite* write) {
        expire_now(write, now);
        for (AttrNumber column : {kRequestHash, kResponse, kResultId, kCheckpoint, kState, kBody})
            write->set(column, write->terms.null_of(column));
    });
    note_expiry(now);
    note_end_of_claim(key); // others may wait for one that was running
    audit_forget(key, row, reason);
    return true;
}

} // namespace interlock::idempotency

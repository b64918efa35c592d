// Deleting expired keys: in short batches, oldest first, skipping locked rows.

#include "idempotency/sweep.h"
#include "idempotency/table.h"
#include "server/arguments.h"
#include "server/subtransaction.h"
#include "sweeper/sweeper.h"
#include "table/restricted.h"
#include "table/subscription.h"

namespace interlock::idempotency {

static int64 delete_expired_keys(int32 max_rows);

extern "C" {
PG_FUNCTION_INFO_V1(idempotency_sweep);

// idempotency_sweep(max_rows)
Datum idempotency_sweep(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    int32 max_rows = above_zero(DatumGetInt32(arguments.required(0, "max_rows")), "max_rows");
    PG_RETURN_INT64(delete_expired_keys(max_rows));
}
}

constexpr TimestampTz kPostponed = USECS_PER_HOUR;

static void add_expired(Statement* statement) {
    statement->add(" FROM interlock.idempotency WHERE expires_at OPERATOR(pg_catalog.<=) $%d",
                   statement->parameter(TIMESTAMPTZOID));
    statement->add(" ORDER BY expires_at LIMIT $%d FOR UPDATE SKIP LOCKED",
                   statement->parameter(INT4OID));
}

static void add_key_condition(Statement* statement) {
    statement->add(" WHERE scope OPERATOR(pg_catalog.=) $%d", statement->parameter(TEXTOID));
    statement->add(" AND key OPERATOR(pg_catalog.=) $%d", statement->parameter(TEXTOID));
}

// The keys of some expired rows, locked; returns how many.
static int find_expired(int32 max_rows, IdempotencyKey* keys) {
    int count = 0;
    with_spi([&] {
        TablePlan plan =
            idempotency_plan(PlanKind("idempotency_expired"), [](Statement* statement) {
                statement->add("SELECT scope, key");
                add_expired(statement);
            });
        Parameters parameters(2);
        parameters.add(TimestampTzGetDatum(GetCurrentTimestamp()));
        parameters.add(Int32GetDatum(max_rows));
        count = static_cast<int>(run_plan(plan, parameters));
        for (int i = 0; i < count; i++) {
            auto column = [&](int n) {
                bool is_null;
                return SPI_datumTransfer(
                    SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, n, &is_null), false,
                    -1);
            };
            keys[i] = {column(1), column(2)};
        }
    });
    return count;
}

static void delete_key(const IdempotencyKey& key) {
    with_spi([&] {
        TablePlan plan =
            idempotency_plan(PlanKind("idempotency_delete_one"), [](Statement* statement) {
                statement->add("DELETE FROM interlock.idempotency");
                add_key_condition(statement);
            });
        Parameters parameters(2);
        parameters.add(key.scope);
        parameters.add(key.key);
        run_plan(plan, parameters);
    });
}

// Whatever a check of something that refers to it may wait for.
static bool delete_in_time(const IdempotencyKey& key) {
    constexpr int kLongest = 300; // milliseconds
    ErrorData* error = attempt(
        [&] {
            enable_timeout_after(STATEMENT_TIMEOUT, kLongest);
            delete_key(key);
        },
        OnCancel::kReturn);
    disable_timeout(STATEMENT_TIMEOUT, false);
    return error == nullptr;
}

static void postpone_key(const IdempotencyKey& key) {
    with_spi([&] {
        TablePlan plan =
            idempotency_plan(PlanKind("idempotency_postpone"), [](Statement* statement) {
                statement->add("UPDATE interlock.idempotency SET expires_at = $%d",
                               statement->parameter(TIMESTAMPTZOID));
                statement->add(", deadline = $%d", statement->parameter(TIMESTAMPTZOID));
                statement->add(", token = DEFAULT"); // its owner has lost it, as with the row
                add_key_condition(statement);
            });
        Parameters parameters(4);
        parameters.add(TimestampTzGetDatum(GetCurrentTimestamp() + kPostponed));
        parameters.add(TimestampTzGetDatum(kPostponedDeadline));
        parameters.add(key.scope);
        parameters.add(key.key);
        run_plan(plan, parameters);
    });
}

// Deletes up to max_rows expired keys as the table's owner; returns how many. Raises 42501 when
// that would run code of other roles.
static int64 delete_expired_keys(int32 max_rows) {
    int64 deleted = 0;
    deleting_as_owner(idempotency_table(), [&] {
        with_spi([&] {
            TablePlan plan =
                idempotency_plan(PlanKind("idempotency_delete"), [](Statement* statement) {
                    statement->add(
                        "DELETE FROM interlock.idempotency WHERE ctid "
                        "OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT ctid");
                    add_expired(statement);
                    statement->add("))");
                });
            Parameters parameters(2);
            parameters.add(TimestampTzGetDatum(GetCurrentTimestamp()));
            parameters.add(Int32GetDatum(max_rows));
            deleted = static_cast<int64>(run_plan(plan, parameters));
        });
    });
    return deleted;
}

// The same key by key, for when a batch fails: a key that cannot be deleted, because something
// refers to it, or not in time, is left for an hour. Only for the worker, whose statement timeout
// it uses. Returns how many it went through until stop_at.
static int delete_one_by_one(int32 max_rows, TimestampTz stop_at) {
    auto* keys = static_cast<IdempotencyKey*>(palloc(sizeof(IdempotencyKey) * max_rows));
    int count = 0;
    int done = 0;
    deleting_as_owner(idempotency_table(), [&] {
        count = find_expired(max_rows, keys);
        for (done = 0; done < count && GetCurrentTimestamp() < stop_at; done++)
            if (!delete_in_time(keys[done]))
                postpone_key(keys[done]);
    });
    return done;
}

// When the first of those left expires, DT_NOEND if none is left.
static TimestampTz first_expiry() {
    TimestampTz first = DT_NOEND;
    deleting_as_owner(idempotency_table(), [&] {
        with_spi([&] {
            TablePlan plan =
                idempotency_plan(PlanKind("idempotency_first"), [](Statement* statement) {
                    statement->add(
                        "SELECT expires_at FROM interlock.idempotency "
                        "ORDER BY expires_at LIMIT 1");
                });
            bool is_null;
            if (run_plan(plan, Parameters(0)) > 0)
                first = DatumGetTimestampTz(
                    SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null));
        });
    });
    return first;
}

// A batch, or a few keys one by one when something is wrong with one of them. Whether there may be
// more.
static bool sweep_some_keys(int pace, TimestampTz* first, char* message) {
    const int longest = 500 * pace; // milliseconds, and as much again for one by one
    constexpr int kOneByOne = 100;
    bool more = false;
    auto batch = [&] {
        if (is_subscribed(idempotency_table()))
            return;
        more = delete_expired_keys(sweep_batch) == sweep_batch;
        disable_timeout(STATEMENT_TIMEOUT, false);
        *first = first_expiry();
    };
    auto one_by_one = [&] {
        TimestampTz stop_at = GetCurrentTimestamp() + longest * INT64CONST(1000);
        more = delete_one_by_one(kOneByOne, stop_at) > 0;
        *first = first_expiry();
    };
    char ignored[kErrorBytes];
    if (!in_sweep_transaction(ignored, longest, batch))
        (void)in_sweep_transaction(message, 0, one_by_one);
    return more;
}

static void sweep_keys(SweepRun* run, List*) {
    char message[kErrorBytes] = "";
    bool more = true;
    TimestampTz first = DT_NOEND;
    do {
        more = sweep_some_keys(run->pace, &first, message);
    } while (more && GetCurrentTimestamp() < run->stop_at);
    if (message[0] != '\0')
        note_failure(run, "idempotency", message);
    else if (more)
        come_again(run, run->start); // there are more that are due
    else if (first != DT_NOEND)
        come_again(run, Max(first, run->start) + kKeySweepGap);
}

extern const SweepTask kKeySweep = {
    .activity = "deleting expired idempotency keys",
    .run = sweep_keys,
};

} // namespace interlock::idempotency

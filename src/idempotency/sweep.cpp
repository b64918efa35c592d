// Deleting expired keys: in short batches, oldest first, passing over what somebody has locked.

#include "idempotency/sweep.h"
#include "idempotency/table.h"
#include "server/arguments.h"
#include "server/subtransaction.h"
#include "table/restricted.h"

using namespace interlock;

extern "C" {
PG_FUNCTION_INFO_V1(idempotency_sweep);

// idempotency_sweep(max_rows)
Datum idempotency_sweep(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    int32 max_rows = DatumGetInt32(arguments.required(0, "max_rows"));
    if (max_rows <= 0)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("argument \"max_rows\" must be above zero")));
    PG_RETURN_INT64(delete_expired_keys(max_rows));
}
}

namespace {

constexpr TimestampTz kPostponed = USECS_PER_HOUR;

void add_expired(Statement* statement) {
    statement->add(" FROM interlock.idempotency WHERE expires_at OPERATOR(pg_catalog.<=) $%d",
                   statement->parameter(TIMESTAMPTZOID));
    statement->add(" ORDER BY expires_at LIMIT $%d FOR UPDATE SKIP LOCKED",
                   statement->parameter(INT4OID));
}

void add_key_condition(Statement* statement) {
    statement->add(" WHERE scope OPERATOR(pg_catalog.=) $%d", statement->parameter(TEXTOID));
    statement->add(" AND key OPERATOR(pg_catalog.=) $%d", statement->parameter(TEXTOID));
}

// The keys of some expired rows, locked; returns how many.
int find_expired(int32 max_rows, IdempotencyKey* keys) {
    int count = 0;
    with_spi([&] {
        SPIPlanPtr plan = idempotency_plan(PlanKind::kIdempotencyExpired, [](Statement* statement) {
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

void delete_key(const IdempotencyKey& key) {
    with_spi([&] {
        SPIPlanPtr plan =
            idempotency_plan(PlanKind::kIdempotencyDeleteOne, [](Statement* statement) {
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
bool delete_in_time(const IdempotencyKey& key) {
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

void postpone_key(const IdempotencyKey& key) {
    with_spi([&] {
        SPIPlanPtr plan =
            idempotency_plan(PlanKind::kIdempotencyPostpone, [](Statement* statement) {
                statement->add("UPDATE interlock.idempotency SET expires_at = $%d",
                               statement->parameter(TIMESTAMPTZOID));
                add_key_condition(statement);
            });
        Parameters parameters(3);
        parameters.add(TimestampTzGetDatum(GetCurrentTimestamp() + kPostponed));
        parameters.add(key.scope);
        parameters.add(key.key);
        run_plan(plan, parameters);
    });
}

} // namespace

namespace interlock {

int64 delete_expired_keys(int32 max_rows) {
    int64 deleted = 0;
    deleting_as_owner(idempotency_table(), [&] {
        with_spi([&] {
            SPIPlanPtr plan =
                idempotency_plan(PlanKind::kIdempotencyDelete, [](Statement* statement) {
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

int delete_one_by_one(int32 max_rows, TimestampTz stop_at) {
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

TimestampTz first_expiry() {
    TimestampTz first = DT_NOEND;
    deleting_as_owner(idempotency_table(), [&] {
        with_spi([&] {
            SPIPlanPtr plan =
                idempotency_plan(PlanKind::kIdempotencyFirst, [](Statement* statement) {
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

} // namespace interlock

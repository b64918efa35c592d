#include "marker/sweep.h"

#include "marker/marker.h"
#include "server/arguments.h"
#include "server/error.h"
#include "server/relation_lock.h"
#include "server/result_row.h"
#include "server/subtransaction.h"
#include "sweeper/sweeper.h"
#include "table/plan.h"
#include "table/restricted.h"
#include "table/subscription.h"

namespace interlock::marker {

namespace {

struct Sweep {
    Relation rel;
    const TableInfo* info;
    const Marker* marker;
    SweepBudget budget;
    TimestampTz now; // what has expired by now is released
    SweepResult result;
};

// Some expired rows, in the order of their deadlines.
struct Batch {
    int count;
    SweepPosition* rows;
};

} // namespace

static bool is_own_transaction(FunctionCallInfo fcinfo);
static void sweep_rows(Sweep* sweep);

extern "C" {
PG_FUNCTION_INFO_V1(sweep);

// sweep(max_rows) -> setof (rel, released)
Datum sweep(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    int64 left = arguments.is_null(0)
                     ? 0
                     : above_zero(DatumGetInt32(arguments.value(0)), "max_rows",
                                  "Leave it out to release everything that has expired.");
    bool limited = left > 0;
    if (is_own_transaction(fcinfo))
        fire_triggers_at_once();
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    ListCell* cell;
    foreach (cell, marker_tables(MarkerTables::kStored)) {
        if (limited && left <= 0)
            break;
        Oid relid = lfirst_oid(cell);
        if (!is_swept(relid))
            continue;
        SweepResult result = {};
        ErrorData* error = attempt([&] { result = sweep_table(relid, {.max_rows = left}); });
        if (error != nullptr)
            copy_message(result.last_error, sizeof(result.last_error), error->message);
        if (result.last_error[0] != '\0')
            ereport(WARNING, (errmsg("could not release every expired marker of \"%s\"",
                                     get_rel_name(relid)),
                              errdetail("%s", result.last_error)));
        if (limited)
            left -= result.released;
        if (result.released == 0)
            continue;
        Datum values[2] = {ObjectIdGetDatum(relid), Int64GetDatum(result.released)};
        bool nulls[2] = {};
        add_result_row(output, values, nulls);
    }
    return 0;
}
}

SweepResult sweep_table(Oid relid, const SweepBudget& budget) {
    Sweep sweep = {};
    sweep.budget = budget;
    sweep.result.reached = budget.from;
    if (!lock_without_waiting(relid, RowExclusiveLock)) {
        sweep.result.skipped = 1;
        return sweep.result;
    }
    sweep.rel = try_relation_open(relid, NoLock);
    if (sweep.rel == nullptr)
        return sweep.result;
    sweep.info = table_info(sweep.rel);
    const Marker* marker = marker_of(sweep.info);
    if (marker != nullptr && marker->well_formed && marker->twin == nullptr &&
        !RELATION_IS_OTHER_TEMP(sweep.rel)) {
        sweep.marker = usable_marker(sweep.rel, sweep.info);
        as_untrusted(sweep.rel->rd_rel->relowner, 0, [&] {
            (void)set_config_option("row_security", "on", PGC_USERSET, PGC_S_SESSION,
                                    GUC_ACTION_SAVE, true, 0, false);
            sweep_rows(&sweep);
        });
    }
    table_close(sweep.rel, NoLock);
    return sweep.result;
}

// Whether the call is a statement that a client sent alone, outside any transaction block: then it
// may change settings of the transaction.
static bool is_own_transaction(FunctionCallInfo fcinfo) {
    EState* state = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo)->econtext->ecxt_estate;
    bool is_top_level = state != nullptr && ActivePortal != nullptr &&
                        state->es_sourceText == ActivePortal->sourceText;
    return is_top_level && !IsInTransactionBlock(true);
}

static void write_due(Statement* statement, const Sweep& sweep) {
    const char* until = quoted(sweep.marker, kUntil);
    int now = statement->parameter(TIMESTAMPTZOID);
    int last_until = statement->parameter(TIMESTAMPTZOID);
    int last_row = statement->parameter(TIDOID);
    int limit = statement->parameter(INT8OID);
    statement->add(
        "SELECT t.ctid, t.%s FROM ONLY %s t WHERE t.%s OPERATOR(pg_catalog.=) 1 AND t.%s "
        "OPERATOR(pg_catalog.<=) $%d AND t.%s OPERATOR(pg_catalog.>=) $%d AND (t.%s "
        "OPERATOR(pg_catalog.>) $%d OR t.ctid OPERATOR(pg_catalog.>) $%d) ORDER BY t.%s USING "
        "OPERATOR(pg_catalog.<), t.ctid USING OPERATOR(pg_catalog.<) LIMIT $%d",
        until, qualified_name(sweep.rel), quoted(sweep.marker, kStatus), until, now, until,
        last_until, until, last_until, last_row, until, limit);
}

// The next rows in the order of deadlines, behind those seen already.
static Batch next_due(Sweep* sweep, int64 limit) {
    Batch batch = {};
    MemoryContext caller = CurrentMemoryContext;
    with_spi([&] {
        TablePlan plan = plan_of({RelationGetRelid(sweep->rel), PlanKind("sweep_due")},
                                 [&](Statement* statement) { write_due(statement, *sweep); });
        Parameters parameters(4);
        parameters.add(TimestampTzGetDatum(sweep->now));
        parameters.add(TimestampTzGetDatum(sweep->result.reached.until));
        parameters.add(PointerGetDatum(&sweep->result.reached.row));
        parameters.add(Int64GetDatum(limit));
        batch.count = static_cast<int>(run_plan(plan, parameters));
        batch.rows = static_cast<SweepPosition*>(
            MemoryContextAlloc(caller, sizeof(SweepPosition) * (batch.count + 1)));
        for (int i = 0; i < batch.count; i++) {
            HeapTuple tuple = SPI_tuptable->vals[i];
            TupleDesc columns = SPI_tuptable->tupdesc;
            bool is_null;
            Datum row = SPI_getbinval(tuple, columns, 1, &is_null);
            batch.rows[i].row = *reinterpret_cast<ItemPointer>(DatumGetPointer(row));
            batch.rows[i].until = DatumGetTimestampTz(SPI_getbinval(tuple, columns, 2, &is_null));
        }
    });
    return batch;
}

static Datum tid_array(const SweepPosition* rows, int count) {
    auto* tids = static_cast<Datum*>(palloc(sizeof(Datum) * (count + 1)));
    for (int i = 0; i < count; i++)
        tids[i] = PointerGetDatum(&rows[i].row);
    return PointerGetDatum(
        construct_array(tids, count, TIDOID, sizeof(ItemPointerData), false, TYPALIGN_SHORT));
}

// Locks those of the rows that are still expired and that no other transaction has locked: an array
// of tid. The condition is a CASE; without it the planner would search the index of all due rows
// for each batch.
static Datum lock_rows(const Sweep& sweep, const SweepPosition* rows, int count) {
    TablePlan plan =
        plan_of({RelationGetRelid(sweep.rel), PlanKind("sweep_lock")}, [&](Statement* statement) {
            statement->add(
                "WITH due AS (SELECT t.ctid FROM ONLY %s t WHERE t.ctid OPERATOR(pg_catalog.=) ANY "
                "($%d) ",
                qualified_name(sweep.rel), statement->parameter(get_array_type(TIDOID)));
            statement->add(
                "AND CASE WHEN t.%s OPERATOR(pg_catalog.=) 1 THEN t.%s OPERATOR(pg_catalog.<=) "
                "$%d END FOR NO KEY UPDATE SKIP LOCKED) "
                "SELECT pg_catalog.array_agg(due.ctid) FROM due",
                quoted(sweep.marker, kStatus), quoted(sweep.marker, kUntil),
                statement->parameter(TIMESTAMPTZOID));
        });
    Parameters parameters(2);
    parameters.add(tid_array(rows, count));
    parameters.add(TimestampTzGetDatum(sweep.now));
    run_plan(plan, parameters);
    bool is_null;
    Datum locked = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
    return is_null ? 0 : locked;
}

// The columns are cleared here as well as by the trigger, which may be disabled.
static void write_release(Statement* statement, const Sweep& sweep) {
    statement->add("UPDATE ONLY %s AS t SET %s = 0", qualified_name(sweep.rel),
                   quoted(sweep.marker, kStatus));
    for (MarkerRole role : {kHolder, kTime, kUntil, kReason})
        if (!sweep.marker->columns[role].not_null)
            statement->add(", %s = NULL", quoted(sweep.marker, role));
    statement->add(" WHERE t.ctid OPERATOR(pg_catalog.=) ANY ($%d)",
                   statement->parameter(get_array_type(TIDOID)));
}

static int64 release_rows(const Sweep& sweep, const SweepPosition* rows, int count) {
    int64 released = 0;
    with_spi([&] {
        Datum locked = lock_rows(sweep, rows, count);
        if (locked == 0)
            return;
        TablePlan plan = plan_of({RelationGetRelid(sweep.rel), PlanKind("sweep_release")},
                                 [&](Statement* statement) { write_release(statement, sweep); });
        Parameters parameters(1);
        parameters.add(locked);
        released = static_cast<int64>(run_plan(plan, parameters));
    });
    return released;
}

// With a timeout of its own a batch that hangs, for example in a user's trigger, fails like any
// other: no client cancels a background worker. Without one a cancel ends the whole call.
static ErrorData* release_or_error(Sweep* sweep, const SweepPosition* rows, int count) {
    int timeout = sweep->budget.statement_timeout;
    int64 released = 0;
    bool is_batch = count > 1;
    if (sweep->budget.before_attempt != nullptr)
        sweep->budget.before_attempt(RelationGetRelid(sweep->rel),
                                     is_batch ? sweep->result.reached : rows[0], is_batch);
    if (timeout > 0)
        enable_timeout_after(STATEMENT_TIMEOUT, timeout);
    ErrorData* error = attempt([&] { released = release_rows(*sweep, rows, count); },
                               timeout > 0 ? OnCancel::kReturn : OnCancel::kRaise);
    if (timeout > 0)
        disable_timeout(STATEMENT_TIMEOUT, false);
    if (error == nullptr) {
        sweep->result.released += released;
        sweep->result.skipped += count - released;
        sweep->result.reached = rows[count - 1];
    }
    return error;
}

static bool is_late(const Sweep& sweep) { return GetCurrentTimestamp() >= sweep.budget.stop_at; }

// The first row is tried however late it is, so that every call gets somewhere.
static void release_one_by_one(Sweep* sweep, const Batch& batch) {
    for (int i = 0; i < batch.count; i++) {
        CHECK_FOR_INTERRUPTS();
        if (i > 0 && is_late(*sweep)) {
            sweep->result.unfinished = true;
            return;
        }
        ErrorData* error = release_or_error(sweep, &batch.rows[i], 1);
        if (error == nullptr)
            continue;
        sweep->result.reached = batch.rows[i];
        sweep->result.failed++;
        copy_message(sweep->result.last_error, sizeof(sweep->result.last_error), error->message);
    }
}

static void find_next_deadline(Sweep* sweep) {
    with_spi([&] {
        TablePlan plan = plan_of(
            {RelationGetRelid(sweep->rel), PlanKind("sweep_next")}, [&](Statement* statement) {
                statement->add(
                    "SELECT pg_catalog.min(t.%s) FROM ONLY %s t WHERE t.%s "
                    "OPERATOR(pg_catalog.=) 1 AND t.%s OPERATOR(pg_catalog.>) $%d",
                    quoted(sweep->marker, kUntil), qualified_name(sweep->rel),
                    quoted(sweep->marker, kStatus), quoted(sweep->marker, kUntil),
                    statement->parameter(TIMESTAMPTZOID));
            });
        Parameters parameters(1);
        parameters.add(TimestampTzGetDatum(sweep->now));
        run_plan(plan, parameters);
        bool is_null;
        Datum next = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
        if (!is_null)
            sweep->result.next_deadline = DatumGetTimestampTz(next);
    });
}

// A batch is done when fewer rows were due than requested.
static bool release_batch(Sweep* sweep, int64 limit) {
    Batch batch = next_due(sweep, limit);
    if (batch.count > 0 && release_or_error(sweep, batch.rows, batch.count) != nullptr)
        release_one_by_one(sweep, batch);
    return batch.count < limit;
}

static int64 rows_left(const Sweep& sweep, int64 limit) {
    if (sweep.budget.max_rows == 0)
        return limit;
    return Min(limit, sweep.budget.max_rows - sweep.result.released);
}

static void sweep_rows(Sweep* sweep) {
    constexpr int64 kFirstBatch = 16;
    constexpr TimestampTz kQuick = 100 * 1000; // microseconds
    sweep->now = GetCurrentTimestamp();
    MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "interlock sweep batch",
                                                  ALLOCSET_DEFAULT_SIZES);
    bool row_by_row = sweep->budget.row_by_row;
    int64 size = row_by_row ? 1 : Min(kFirstBatch, static_cast<int64>(sweep_batch));
    bool is_first = true; // tried however late it is, so that every call gets somewhere
    for (bool done = false; !done && !sweep->result.unfinished; is_first = false) {
        CHECK_FOR_INTERRUPTS();
        int64 limit = rows_left(*sweep, size);
        TimestampTz start = GetCurrentTimestamp();
        if (limit <= 0 || (!is_first && start >= sweep->budget.stop_at)) {
            sweep->result.unfinished = true;
            break;
        }
        done = in_context(scratch, [&] { return release_batch(sweep, limit); });
        MemoryContextReset(scratch);
        if (!row_by_row && GetCurrentTimestamp() - start < kQuick)
            size = Min(size * 2, static_cast<int64>(sweep_batch));
    }
    MemoryContextDelete(scratch);
    find_next_deadline(sweep);
}

} // namespace interlock::marker

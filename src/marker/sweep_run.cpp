// The tables with markers in a run of the sweeper: each in a transaction of its own, until the time
// is over. A run that stops in the middle of a table remembers its position, and the next one
// continues from there.

#include "marker/marker.h"
#include "marker/sweep.h"
#include "sweeper/task.h"
#include "table/plan.h"

namespace interlock::marker {

constexpr int kLongestBatch = 1000; // milliseconds

static bool awaits_prepared = false; // in the worker's run

static bool has_rows(const char* query) {
    bool found = false;
    with_spi([&] {
        run_command(query);
        found = SPI_processed > 0;
    });
    return found;
}

// A table that gets its markers in a transaction is locked so until it has ended.
static bool may_enable_markers() {
    return has_rows(
        psprintf("SELECT FROM pg_catalog.pg_locks WHERE pid IS NULL AND database "
                 "OPERATOR(pg_catalog.=) %u AND locktype OPERATOR(pg_catalog.=) "
                 "'relation' AND mode OPERATOR(pg_catalog.=) ANY "
                 "('{ShareRowExclusiveLock,AccessExclusiveLock}') LIMIT 1",
                 MyDatabaseId));
}

static bool has_prepared_transactions() {
    return has_rows(
        "SELECT FROM pg_catalog.pg_prepared_xacts WHERE database "
        "OPERATOR(pg_catalog.=) pg_catalog.current_database() LIMIT 1");
}

// Markers of a prepared transaction are not visible until it is committed, and COMMIT PREPARED does
// not report their deadline. So the sweeper runs again while there is one. This must be checked
// before the tables are searched and read: what is committed later is still found here, and what is
// prepared later reports its deadline.
static List* find_tables() {
    pgstat_report_activity(STATE_RUNNING, "looking for tables with markers");
    bool may_enable = max_prepared_xacts > 0 && may_enable_markers();
    bool is_any = max_prepared_xacts > 0 && has_prepared_transactions();
    List* tables = marker_tables(MarkerTables::kStored);
    awaits_prepared = tables != NIL ? is_any : may_enable;
    return tables;
}

// A run starts with the tables after the one in which the last run stopped, so that a table that
// uses up all the time does not starve the others.
static List* rotate(List* tables, Oid last) {
    List* behind = NIL;
    List* rest = NIL;
    ListCell* cell;
    foreach (cell, tables)
        if (lfirst_oid(cell) > last)
            behind = lappend_oid(behind, lfirst_oid(cell));
        else
            rest = lappend_oid(rest, lfirst_oid(cell));
    return list_concat(behind, rest);
}

static SweepResult sweep_one(const SweepRun& run, Oid table) {
    SweepBudget budget;
    budget.stop_at = run.stop_at;
    budget.statement_timeout = kLongestBatch * run.pace;
    budget.before_attempt = note_attempt;
    if (table == run.resume.table) {
        budget.from = run.resume.reached;
        budget.row_by_row = run.resume.row_by_row;
    }
    // Policies of the owner run before the first batch, and may end the worker: the next one
    // continues behind this table, however many of them there are.
    note_attempt(table, budget.from, budget.row_by_row);
    return sweep_table(table, budget);
}

static void note_result(SweepRun* run, Oid table, const SweepResult& result) {
    TimestampTz now = GetCurrentTimestamp();
    run->released += result.released;
    run->failed += result.failed;
    if (result.unfinished)
        run->stopped = {table, result.reached, false};
    come_again(run, result.unfinished ? now : result.next_deadline);
    if (result.skipped > 0)
        come_again(run, now + kRetryLocked);
    if (result.failed > 0)
        note_table_failure(run, table, result.last_error);
    // Rows that failed in an earlier run before the position where this one started are tried again
    // as well.
    if (table == run->resume.table)
        come_again(run, now + kRetryFailed);
}

static void sweep_next(SweepRun* run, Oid table) {
    char message[kErrorBytes] = "";
    char activity[64];
    snprintf(activity, sizeof(activity), "sweeping table %u", table);
    pgstat_report_activity(STATE_RUNNING, activity);
    SweepResult result = {};
    bool well = in_sweep_transaction(message, 0, [&] {
        if (begin_table(run, table))
            result = sweep_one(*run, table);
        else if (table == run->resume.table)
            run->stopped = run->resume;
    });
    LockReleaseAll(USER_LOCKMETHOD, true); // session-level locks that its triggers took
    if (well) {
        note_result(run, table, result);
        return;
    }
    run->failed++;
    note_table_failure(run, table, message);
}

static void sweep_tables(SweepRun* run, List* tables) {
    if (awaits_prepared)
        come_again(run, GetCurrentTimestamp() + kRetryLocked);
    List* in_turn = rotate(tables, run->resume.table);
    Oid last = InvalidOid;
    ListCell* cell;
    foreach (cell, in_turn) {
        if (OidIsValid(last) && GetCurrentTimestamp() >= run->stop_at) {
            come_again(run, run->start); // the tables not reached are due now
            if (!OidIsValid(run->stopped.table))
                run->stopped.table = last;
            break;
        }
        last = lfirst_oid(cell);
        sweep_next(run, last);
    }
}

extern const SweepTask kMarkerSweep = {
    .activity = "sweeping tables",
    .find_tables = find_tables,
    .run = sweep_tables,
};

} // namespace interlock::marker

// Deleting old lines of the write log, in short batches from the oldest on.

#include "ownership/write_log.h"
#include "sweeper/sweeper.h"
#include "sweeper/task.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/restricted.h"
#include "table/subscription.h"

namespace interlock::ownership {

static int write_log_keep = 30 * 86400;

static TimestampTz keep() { return write_log_keep * USECS_PER_SEC; }

static int64 delete_oldest(Oid table, int32 max_rows) {
    int64 deleted = 0;
    with_spi([&] {
        TablePlan plan = plan_of({table, PlanKind("write_log_trim")}, [](Statement* statement) {
            statement->add(
                "DELETE FROM interlock.write_log WHERE id OPERATOR(pg_catalog.=) ANY (ARRAY("
                "SELECT id FROM (SELECT id, written_at FROM interlock.write_log ORDER BY id "
                "LIMIT $%d) l ",
                statement->parameter(INT4OID));
            statement->add("WHERE written_at OPERATOR(pg_catalog.<) $%d))",
                           statement->parameter(TIMESTAMPTZOID));
        });
        Parameters parameters(2);
        parameters.add(Int32GetDatum(max_rows));
        parameters.add(TimestampTzGetDatum(GetCurrentTimestamp() - keep()));
        deleted = static_cast<int64>(run_plan(plan, parameters));
    });
    return deleted;
}

static TimestampTz first_line(Oid table) {
    TimestampTz first = DT_NOEND;
    with_spi([&] {
        TablePlan plan = plan_of({table, PlanKind("write_log_first")}, [](Statement* statement) {
            statement->add("SELECT written_at FROM interlock.write_log ORDER BY id LIMIT 1");
        });
        bool is_null;
        if (run_plan(plan, Parameters(0)) > 0)
            first = DatumGetTimestampTz(
                SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null));
    });
    return first;
}

// Reads the oldest max_rows. Returns whether there may be more, and when the next one is old,
// DT_NOEND if none is left.
static bool delete_old_lines(int32 max_rows, TimestampTz* next) {
    *next = DT_NOEND;
    if (write_log_keep == 0)
        return false;
    bool more = false;
    Oid table = own_table("write_log");
    if (is_subscribed(table))
        return false;
    deleting_as_owner(table, [&] {
        more = delete_oldest(table, max_rows) == max_rows;
        TimestampTz first = first_line(table);
        if (first != DT_NOEND)
            *next = write_log_expiry(first);
    });
    return more;
}

static void trim_write_log(SweepRun* run, List*) {
    constexpr TimestampTz kGap = USECS_PER_MINUTE; // lines are deleted together
    char message[kErrorBytes] = "";
    bool well = true;
    bool more = true;
    TimestampTz next = DT_NOEND;
    do {
        well =
            in_sweep_transaction(message, 0, [&] { more = delete_old_lines(sweep_batch, &next); });
    } while (more && well && GetCurrentTimestamp() < run->stop_at);
    if (!well)
        note_failure(run, "write log", message);
    else if (next != DT_NOEND)
        come_again(run, more ? run->start : Max(next, run->start) + kGap);
}

void define_write_log_settings() {
    DefineCustomIntVariable("interlock.write_log_keep", "How long lines of the write log are kept.",
                            "Zero keeps them for ever.", &write_log_keep, 30 * 86400, 0,
                            PG_INT32_MAX, PGC_SIGHUP, GUC_UNIT_S, nullptr, nullptr, nullptr);
}

TimestampTz write_log_expiry(TimestampTz written) {
    return write_log_keep == 0 ? DT_NOEND : written + keep();
}

extern const SweepTask kWriteLogSweep = {
    .activity = "deleting old lines of the write log",
    .run = trim_write_log,
};

} // namespace interlock::ownership

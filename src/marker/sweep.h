// Releases expired markers of one table. The sweeper (sweeper/task.h) calls it when markers expire.
// The SQL function sweep() calls it too.
#pragma once

#include "sweeper/task.h"

namespace interlock::marker {

struct SweepResult {
    int64 released = 0;
    int64 failed = 0;  // rows whose release raised an error; it is tried again later
    int64 skipped = 0; // rows or tables that another transaction has locked
    bool unfinished = false;
    SweepPosition reached = {};           // where to continue if unfinished
    TimestampTz next_deadline = DT_NOEND; // DT_NOEND: nothing is marked
    char last_error[256] = "";
};

// The limits of one call, and a callback that reports its progress.
struct SweepBudget {
    int64 max_rows = 0;             // 0: no limit
    TimestampTz stop_at = DT_NOEND; // nothing is begun after it
    int statement_timeout = 0;      // limit of a batch or row in milliseconds; 0: none
    bool row_by_row = false;        // no batches, because a batch has killed the caller before
    SweepPosition from = {};        // an earlier call has tried the rows before it

    // Called before a batch or row is tried, with its position and whether it is a batch. If the
    // caller does not survive it, that position counts as tried.
    void (*before_attempt)(Oid relid, const SweepPosition& position, bool is_batch) = nullptr;
};

// Releases the table's expired markers in the order of their deadlines, in batches. Each batch is a
// subtransaction. Batches are small at first, and become larger while they are fast. A batch that
// fails is repeated row by row, so that one bad row does not block the others. Sets `unfinished` if
// the budget ended the call. Each call tries at least one more row. It skips locked rows and
// tables.
//
// It acts as the table's owner, restricted (table/restricted.h): the table's triggers run with the
// owner's rights only, and the settings they make end with the call.
SweepResult sweep_table(Oid relid, const SweepBudget& budget);

// The sweeper's task: all tables with markers (marker/sweep_run.cpp).
extern const SweepTask kMarkerSweep;

} // namespace interlock::marker

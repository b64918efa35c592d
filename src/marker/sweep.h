// Releasing expired markers of one table. The sweeper (sweeper/task.h) does it when they expire;
// sweep() does it by hand.
#pragma once

#include "sweeper/task.h"

namespace interlock::marker {

struct SweepResult {
    int64 released = 0;
    int64 failed = 0;  // rows whose release raised an error; it is tried again later
    int64 skipped = 0; // rows or tables that another transaction has locked
    bool unfinished = false;
    SweepPosition reached = {};           // where to go on when unfinished
    TimestampTz next_deadline = DT_NOEND; // DT_NOEND when nothing is marked
    char last_error[256] = "";
};

// The limits of one call, and a callback that reports its progress.
struct SweepBudget {
    int64 max_rows = 0;             // 0: no limit
    TimestampTz stop_at = DT_NOEND; // nothing is begun after it
    int statement_timeout = 0;      // milliseconds for a batch or row, then it has failed; 0: none
    bool row_by_row = false;        // no batches: one of them has killed the caller before
    SweepPosition from = {};        // earlier rows were tried by an earlier call

    // Called before a batch or row is tried with the position that counts as tried should the
    // caller not survive it, and whether that was a batch.
    void (*before_attempt)(Oid relid, const SweepPosition& position, bool is_batch) = nullptr;
};

// Releases the table's expired markers in the order of their deadlines, in batches of one
// subtransaction each, small ones first and larger ones while they are quick. A batch that fails is
// repeated row by row, so that one bad row does not block the others. Sets `unfinished` when the
// budget ended the call, and gets at least one row further each time. Rows and tables that are
// locked are skipped.
//
// Acts as the table's owner, restricted (table/restricted.h): the table's triggers run with no more
// rights than their owner has, and the settings they make end with the call.
SweepResult sweep_table(Oid relid, const SweepBudget& budget);

// The sweeper's task: all tables with markers (marker/sweep_run.cpp).
extern const SweepTask kMarkerSweep;

} // namespace interlock::marker

// Releasing expired markers of one table. The sweeper (sweeper.h) decides when; sweep() does it by
// hand.
#pragma once

#include "server.h"

namespace interlock {

// The tables of this database whose rows carry markers: ordinary tables, partitions included. A
// list of Oid in the current context.
List* marker_tables();

// A place in the order of deadlines: everything up to it has been tried.
struct SweepPosition {
    TimestampTz until = DT_NOBEGIN;
    ItemPointerData row = {{0, 0}, 0};
};

struct SweepResult {
    int64 released = 0;
    int64 failed = 0;  // rows whose release raised an error; it is tried again later
    int64 skipped = 0; // rows or tables that somebody has locked
    bool unfinished = false;
    SweepPosition reached = {};           // where to go on when unfinished
    TimestampTz next_deadline = DT_NOEND; // DT_NOEND when nothing is marked
    char last_error[256] = "";
};

// How much one call may do.
struct SweepBudget {
    int64 max_rows = 0;             // 0: no limit
    TimestampTz stop_at = DT_NOEND; // nothing is begun after it
    int statement_timeout = 0;      // milliseconds for a batch or row, then it has failed; 0: none
    SweepPosition from = {};        // what lies before was tried by an earlier call
};

// Releases the table's expired markers in the order of their deadlines, in batches of one
// subtransaction each, small ones first and larger ones while they are quick; a batch that fails is
// done again row by row, so that a bad row holds up nobody. Says `unfinished` when the budget ended
// it, and gets at least one row further each time. Rows and tables that are locked are skipped.
//
// Acts as the table's owner in a security-restricted operation with search_path pg_catalog,
// pg_temp: the table's triggers run, and never with more rights than their owner has.
SweepResult sweep_table(Oid relid, const SweepBudget& budget);

} // namespace interlock

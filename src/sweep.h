// Releasing expired markers of one table. The sweeper (sweeper.h) decides when; sweep() does it by
// hand.
#pragma once

#include "server.h"

namespace interlock {

// The tables of this database whose rows carry markers: ordinary tables, partitions included. A
// list of Oid in the current context.
List* marker_tables();

struct SweepResult {
    int64 released;
    int64 failed;  // rows whose release raised an error; it is tried again later
    int64 skipped; // rows or tables that somebody has locked
    bool unfinished;
    TimestampTz next_deadline; // DT_NOEND when nothing is marked
    char last_error[256];
};

// Releases the table's expired markers in the order of their deadlines, in batches of one
// subtransaction each; a batch that fails is done again row by row, so that a bad row holds up
// nobody. Stops at `stop_at` or after max_rows (0: no limit) and then says `unfinished`. Rows and
// tables that are locked are skipped.
//
// Acts as the table's owner in a security-restricted operation with search_path pg_catalog,
// pg_temp: the table's triggers run, and never with more rights than their owner has.
SweepResult sweep_table(Oid relid, int64 max_rows, TimestampTz stop_at);

} // namespace interlock

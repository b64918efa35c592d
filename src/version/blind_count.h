// Counts how many rows of each table were written blindly, and how many of these another
// transaction had written shortly before. The latter writes would have been lost.
//
// It counts in shared memory by atomic operations, without a lock. Without shared_preload_libraries
// it counts nothing. A count includes writes that were refused or rolled back, and begins at zero
// when the server starts. There is room for kLines tables. Dropped tables make room for others, and
// temporary tables are not counted. It knows the writers for the last kWriters transaction ids, and
// only updates of versioned tables. Rows that were only inserted do not count as written by another
// transaction.
#pragma once

#include "server/server.h"

namespace interlock::inline server {
struct UsageReport; // server/usage_report.h
} // namespace interlock::inline server

namespace interlock::version {

// Notes that the current transaction updates a row of a versioned table.
void note_versioned_write();

// Counts a row of the table that is written blindly. `row` is the version that the statement found.
void count_blind_write(Oid table, HeapTuple row);

void define_blind_window();
void request_blind_counts();
void report_blind_counts(UsageReport* report);

} // namespace interlock::version

// How many rows of each table were written blindly, and how many of these another transaction had
// written shortly before: what would have been lost.
//
// Counted in shared memory, by atomic operations and without a lock; nothing is counted without
// shared_preload_libraries. A count includes writes that were refused or rolled back, and restarts
// with the server. There is room for kLines tables; what is gone gives way, and temporary tables
// are not counted. Which transaction wrote a row shortly before is known of the last kWriters
// transaction ids, and only of updates of versioned tables: not of rows that were only inserted.
#pragma once

#include "server/server.h"

namespace interlock::inline server {
struct UsageReport; // server/usage_report.h
} // namespace interlock::inline server

namespace interlock::version {

// Notes that the present transaction updates a row of a versioned table.
void note_versioned_write();

// Counts a row of the table that is written blindly, as the statement found it.
void count_blind_write(Oid table, HeapTuple row);

void define_blind_window();
void request_blind_counts();
void report_blind_counts(UsageReport* report);

} // namespace interlock::version

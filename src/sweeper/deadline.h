// How a concept reports to the sweeper when there is work in this database.
#pragma once

#include "server/server.h"

namespace interlock::inline sweeper {

// Schedules a run of the sweeper in this database at `until`, once the current transaction has
// committed or is prepared. Does nothing without preload.
void note_deadline(TimestampTz until);

// The same at once, whatever becomes of the transaction. Takes a lock of the sweeper, and may be
// called with others held.
void report_deadline_now(TimestampTz until);

// Reports the deadlines at the end of each transaction. Once per process, only while the library is
// preloaded.
void report_deadlines();

} // namespace interlock::inline sweeper

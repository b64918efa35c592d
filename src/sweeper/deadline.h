// How a concept reports to the sweeper when there is work in this database.
#pragma once

#include "server/server.h"

namespace interlock::inline sweeper {

// Schedules a run of the sweeper in this database at `until`. It takes effect when the current
// transaction has committed or is prepared. Does nothing without preload.
void note_deadline(TimestampTz until);

// The same, but takes effect at once, also if the transaction rolls back. Takes a lock of the
// sweeper. May be called while other locks are held.
void report_deadline_now(TimestampTz until);

// Registers the callback that reports the deadlines at the end of each transaction. Called once per
// process, only if the library is preloaded.
void report_deadlines();

} // namespace interlock::inline sweeper

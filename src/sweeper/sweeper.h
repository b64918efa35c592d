// The sweeper: a launcher without a database and short-lived workers, one for each database with
// work. README.md in this folder draws its states.
//
// Nothing depends on it for safety: a marker past its deadline is free for all sessions, swept or
// not.
#pragma once

#include "server/server.h"

namespace interlock::inline sweeper {

// The settings interlock.sweeper, sweeper_workers, sweep_batch and sweeper_rescan.
extern bool sweeper_enabled;
extern int sweeper_workers;
extern int sweep_batch;
extern int sweeper_rescan;

void define_sweeper_settings();

} // namespace interlock::inline sweeper

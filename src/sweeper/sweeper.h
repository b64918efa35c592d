// The sweeper: a launcher that is connected to no database, and short-lived workers, one for each
// database with work. README.md in this folder shows its states.
//
// No guarantee depends on it. A marker past its deadline is free for all sessions, whether it was
// swept or not.
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

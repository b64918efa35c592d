// Shared memory for the concepts that need it. It exists only if the library is preloaded.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// The shared memory of one concept. request() requests memory and locks before the server starts.
// attach() finds or creates them, under AddinShmemInitLock.
struct SharedArea {
    void (*request)();
    void (*attach)();
};

// To be called from _PG_init while shared_preload_libraries is processed.
void add_shared_area(SharedArea area);

} // namespace interlock::inline server

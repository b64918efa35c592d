// Shared memory of the concepts that need some. Only while the library is preloaded.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// What one concept keeps there. request() asks for memory and locks before the server starts;
// attach() finds or makes them, under AddinShmemInitLock.
struct SharedArea {
    void (*request)();
    void (*attach)();
};

// Call from _PG_init while shared_preload_libraries is processed.
void add_shared_area(SharedArea area);

} // namespace interlock::inline server

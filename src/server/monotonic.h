// A clock that cannot be set.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// Microseconds since an unknown moment.
int64 monotonic_now();

} // namespace interlock::inline server

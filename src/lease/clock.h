// The clock of leases.
#pragma once

#include "server/server.h"

namespace interlock::lease {

// Microseconds of a monotonic clock, which cannot be set. Expiry is decided by it.
constexpr int64 kNeverExpires = PG_INT64_MAX;
int64 monotonic_now();

// Converts a moment of that clock to the system's time, for display.
TimestampTz shown_time(int64 moment);

} // namespace interlock::lease

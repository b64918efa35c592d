// The clock of leases.
#pragma once

#include "server/server.h"

namespace interlock::lease {

// Microseconds of a monotonic clock, which cannot be set. It decides when leases expire.
constexpr int64 kNeverExpires = PG_INT64_MAX;
int64 monotonic_now();

// Converts a time of that clock to the system's time, for display.
TimestampTz shown_time(int64 moment);

} // namespace interlock::lease

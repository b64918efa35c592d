// The clock that leases go by.
#pragma once

#include "server/server.h"

namespace interlock {

// As time that decides is told: microseconds of a clock that nobody sets.
constexpr int64 kNeverExpires = PG_INT64_MAX;
int64 monotonic_now();

// What a moment of that clock is in the system's time, as it is shown to users.
TimestampTz shown_time(int64 moment);

} // namespace interlock

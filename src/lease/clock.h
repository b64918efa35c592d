// The clock of leases.
#pragma once

#include "server/monotonic.h"

namespace interlock::lease {

// monotonic_now() decides when leases expire.
constexpr int64 kNeverExpires = PG_INT64_MAX;

// Converts a time of that clock to the system's time, for display.
TimestampTz shown_time(int64 moment);

} // namespace interlock::lease

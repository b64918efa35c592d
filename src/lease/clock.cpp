#include "lease/clock.h"

namespace interlock::lease {

int64 monotonic_now() {
#ifdef CLOCK_BOOTTIME
    constexpr clockid_t kClock = CLOCK_BOOTTIME; // runs on while the machine sleeps
#else
    constexpr clockid_t kClock = CLOCK_MONOTONIC;
#endif
    timespec now;
    clock_gettime(kClock, &now);
    return now.tv_sec * USECS_PER_SEC + now.tv_nsec / 1000;
}

TimestampTz shown_time(int64 moment) {
    TimestampTz shown = GetCurrentTimestamp(); // first: a pause before the other makes it too early
    return moment == kNeverExpires ? DT_NOEND : shown + (moment - monotonic_now());
}

} // namespace interlock::lease

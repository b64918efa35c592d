#include "server/monotonic.h"

namespace interlock::inline server {

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

} // namespace interlock::inline server

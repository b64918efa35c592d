#include "lease/clock.h"

namespace interlock::lease {

TimestampTz shown_time(int64 moment) {
    TimestampTz shown = GetCurrentTimestamp(); // first: a pause before the other makes it too early
    return moment == kNeverExpires ? DT_NOEND : shown + (moment - monotonic_now());
}

} // namespace interlock::lease

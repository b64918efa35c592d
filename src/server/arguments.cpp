#include "server/arguments.h"

namespace interlock {

int64 duration_argument(const Interval* interval, const char* name) {
    double days = interval->month * 30.0 + interval->day;
    double duration = days * USECS_PER_DAY + static_cast<double>(interval->time);
    if (duration < 1.0 || duration > static_cast<double>(kLongestDuration))
        ereport(
            ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("argument \"%s\" must be a duration above zero and at most ten years", name),
             errhint("For example '5 min'.")));
    return static_cast<int64>(days) * USECS_PER_DAY + interval->time;
}

} // namespace interlock

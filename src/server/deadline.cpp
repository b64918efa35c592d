#include "server/deadline.h"

namespace interlock::inline server {

constexpr int64 kForever = -1;

// Longer waits have no limit: lock_timeout has no more bits.
constexpr int64 kLongest = PG_INT32_MAX * INT64CONST(1000);

Deadline::Deadline(int64 limit) : limit_(limit) {
    if (LockTimeout > 0 && (limit_ < 0 || limit_ > LockTimeout * INT64CONST(1000)))
        limit_ = LockTimeout * INT64CONST(1000);
    INSTR_TIME_SET_ZERO(start_);
    if (limit_ > 0)
        INSTR_TIME_SET_CURRENT(start_);
}

Deadline Deadline::argument(const Arguments& arguments, int n) {
    if (arguments.is_null(n))
        return Deadline(kForever);
    int64 limit = duration_or_zero_argument(
        arguments.interval(n, "wait"), "wait",
        "Zero does not wait at all, and null waits as lock_timeout says.");
    return Deadline(limit > kLongest ? kForever : limit);
}

Deadline Deadline::after_milliseconds(int64 wait) {
    return Deadline(wait < 0 ? kForever : wait * 1000);
}

int64 Deadline::left() const {
    if (limit_ == 0)
        return 0;
    instr_time now;
    INSTR_TIME_SET_CURRENT(now);
    INSTR_TIME_SUBTRACT(now, start_);
    return limit_ - static_cast<int64>(INSTR_TIME_GET_MICROSEC(now));
}

void Deadline::set_lock_timeout() const {
    char milliseconds[32];
    snprintf(milliseconds, sizeof(milliseconds), INT64_FORMAT, left_in_milliseconds());
    (void)set_config_option("lock_timeout", milliseconds, PGC_USERSET, PGC_S_SESSION,
                            GUC_ACTION_SAVE, true, 0, false);
}

} // namespace interlock::inline server

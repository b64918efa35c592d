#include "server/notify.h"

namespace interlock {

Notify notify_argument(const Arguments& arguments, int n) {
    const char* notify = arguments.string(n, "notify");
    if (strcmp(notify, "full") == 0)
        return Notify::kFull;
    bool on;
    if (!parse_bool(notify, &on))
        refuse_value("notify", notify, "Use 'off', 'on' or 'full'.");
    return on ? Notify::kOn : Notify::kOff;
}

} // namespace interlock

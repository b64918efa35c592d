#include "server/notify.h"

namespace interlock::inline server {

const char* notify_name(Notify notify) {
    switch (notify) {
    case Notify::kOff:
        return "off";
    case Notify::kOn:
        return "on";
    case Notify::kFull:
        return "full";
    }
    pg_unreachable();
}

bool parse_notify(const char* name, Notify* notify) {
    if (strcmp(name, "full") == 0) {
        *notify = Notify::kFull;
        return true;
    }
    bool on;
    if (!parse_bool(name, &on))
        return false;
    *notify = on ? Notify::kOn : Notify::kOff;
    return true;
}

Notify notify_argument(const Arguments& arguments, int n) {
    const char* name = arguments.string(n, "notify");
    Notify notify;
    if (!parse_notify(name, &notify))
        refuse_value("notify", name, "Use 'off', 'on' or 'full'.");
    return notify;
}

bool has_room_for_notifications(double most_used) {
    return DatumGetFloat8(DirectFunctionCall1(pg_notification_queue_usage, 0)) < most_used;
}

} // namespace interlock::inline server

#include "statement/blind_updates.h"

#include "server/arguments.h"
#include "statement/running.h"

namespace interlock::inline statement {

const char* blind_updates_name(BlindUpdates mode) {
    switch (mode) {
    case BlindUpdates::kAllow:
        return "allow";
    case BlindUpdates::kWarn:
        return "warn";
    case BlindUpdates::kReject:
        return "reject";
    }
    pg_unreachable();
}

bool parse_blind_updates(const char* name, BlindUpdates* mode) {
    for (BlindUpdates each : {BlindUpdates::kAllow, BlindUpdates::kWarn, BlindUpdates::kReject})
        if (strcmp(name, blind_updates_name(each)) == 0) {
            *mode = each;
            return true;
        }
    return false;
}

BlindUpdates blind_updates_argument(const Arguments& arguments, int n) {
    const char* name = arguments.string(n, "blind_updates");
    BlindUpdates mode;
    if (!parse_blind_updates(name, &mode))
        refuse_value("blind_updates", name, "Use 'allow', 'warn' or 'reject'.");
    if (mode != BlindUpdates::kAllow)
        require_all_statements("blind updates cannot be recognized");
    return mode;
}

} // namespace interlock::inline statement

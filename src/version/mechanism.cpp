#include "version/mechanism.h"

#include "statement/blind_updates.h"
#include "table/settings_json.h"
#include "table/trigger.h"

namespace interlock::version {

// As load_versioning() reads it.
static Reading read(Oid, const Trigger* trigger, Setting* setting) {
    BlindUpdates blind_updates = BlindUpdates::kAllow;
    if (argument_count(trigger) == 0 || trigger->tgargs[0][0] == '\0' ||
        (argument_count(trigger) > 1 && !parse_blind_updates(trigger->tgargs[1], &blind_updates)))
        return Reading::kForged;
    JsonObject arguments;
    arguments.add("version_column", trigger->tgargs[0]);
    arguments.add_texts("ignore_columns", trigger->tgargs + 2, Max(0, argument_count(trigger) - 2));
    arguments.add("blind_updates", blind_updates_name(blind_updates));
    setting->arguments = arguments.finish();
    return Reading::kFound;
}

extern const Mechanism kVersionMechanism = {
    .name = "versioning",
    .enable = "enable_versioning",
    .disable = "disable_versioning",
    .read = read,
};

} // namespace interlock::version

#include "lease/mechanism.h"

#include "lease/require.h"
#include "table/settings_json.h"
#include "table/trigger.h"

namespace interlock::lease {

static Reading read(Oid, const Trigger* trigger, Setting* setting) {
    if (argument_count(trigger) == 0 || parse_template(trigger->tgargs[0]).count == 0)
        return Reading::kForged;
    int count = argument_count(trigger) - 1;
    JsonObject arguments;
    arguments.add("columns", count > 0 ? json_texts(trigger->tgargs + 1, count) : nullptr);
    setting->key = trigger->tgargs[0];
    setting->arguments = arguments.finish();
    return Reading::kFound;
}

extern const Mechanism kLeaseMechanism = {
    .name = "require_lease",
    .enable = "require_lease",
    .disable = "unrequire_lease",
    .key = "key",
    .read = read,
};

} // namespace interlock::lease

#include "table/mechanism.h"

#include "table/settings_json.h"
#include "version/version.h"

namespace interlock::version {

static const char* unchanged_name(bool keeps) { return keeps ? "keep" : "move"; }

bool parse_unchanged(const char* name, bool* keeps) {
    *keeps = strcmp(name, unchanged_name(true)) == 0;
    return *keeps || strcmp(name, unchanged_name(false)) == 0;
}

bool read_settings(const Trigger* trigger, VersionSettings* settings) {
    if (argument_count(trigger) < 3 ||
        !parse_blind_updates(trigger->tgargs[1], &settings->blind_updates) ||
        !parse_unchanged(trigger->tgargs[2], &settings->keeps_unchanged))
        return false;
    settings->column = pstrdup(trigger->tgargs[0]);
    settings->ignored = arguments_from(trigger, 3);
    return is_name(settings->column);
}

List* trigger_arguments(const VersionSettings& settings) {
    List* arguments = add_argument(NIL, settings.column);
    arguments = add_argument(arguments, blind_updates_name(settings.blind_updates));
    arguments = add_argument(arguments, unchanged_name(settings.keeps_unchanged));
    return add_names(arguments, settings.ignored);
}

static Reading read(Oid, const Trigger* trigger, Setting* setting) {
    VersionSettings settings;
    if (!read_settings(trigger, &settings))
        return Reading::kForged;
    JsonObject arguments;
    arguments.add("version_column", settings.column);
    arguments.add_texts("ignore_columns", settings.ignored.names, settings.ignored.count);
    arguments.add("blind_updates", blind_updates_name(settings.blind_updates));
    arguments.add("unchanged", unchanged_name(settings.keeps_unchanged));
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

#include "table/mechanism.h"

#include "history/history.h"
#include "table/settings_json.h"

namespace interlock::history {

static Reading read(Oid relid, const Trigger* trigger, Setting* setting) {
    // DETACH leaves the trigger of a partition where it is (history/load.cpp).
    if (trigger->tgisclone && !get_rel_relispartition(relid))
        return Reading::kNone;
    HistorySettings settings;
    if (!read_settings(trigger, &settings))
        return Reading::kForged;
    JsonObject arguments;
    if (settings.keep_versions > 0)
        arguments.add_number("keep_versions", settings.keep_versions);
    else
        arguments.add("keep_versions", json_null());
    arguments.add("keep_for", settings.keep_for > 0 ? duration_text(settings.keep_for) : nullptr);
    arguments.add_texts("ignore_columns", settings.ignored_columns.names,
                        settings.ignored_columns.count);
    arguments.add_texts("ignore_writers", settings.ignored_writers.names,
                        settings.ignored_writers.count);
    arguments.add("notify", notify_name(settings.notify));
    arguments.add_flag("record_markers", settings.record_markers);
    arguments.add("partition_by",
                  settings.partition_by > 0 ? duration_text(settings.partition_by) : nullptr);
    arguments.add_number("whole_every", settings.whole_every);
    setting->arguments = arguments.finish();
    return Reading::kFound;
}

static Jsonb* stored_form(Relation, const char*, Jsonb* arguments) {
    return with_stored_notify(arguments);
}

extern const Mechanism kHistoryMechanism = {
    .name = "history",
    .enable = "enable_history",
    .disable = "disable_history",
    .distributed_hint = "Keep a history of a table that is not distributed.",
    .read = read,
    .stored_form = stored_form,
};

} // namespace interlock::history

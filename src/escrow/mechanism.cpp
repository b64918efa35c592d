#include "table/mechanism.h"

#include "escrow/counted_columns.h"
#include "escrow/escrow.h"
#include "table/settings_json.h"

namespace interlock::escrow {

bool read_settings(const Trigger* trigger, EscrowSettings* settings) {
    if (argument_count(trigger) <= kKeyColumns ||
        !parse_plain_updates(trigger->tgargs[kPlainUpdates], &settings->plain_updates) ||
        !parse_notify(trigger->tgargs[kNotify], &settings->notify))
        return false;
    settings->label = pstrdup(trigger->tgargs[kColumn]);
    settings->least_text = pstrdup(trigger->tgargs[kLeast]);
    settings->most_text = pstrdup(trigger->tgargs[kMost]);
    settings->fold_moves_version = strcmp(trigger->tgargs[kMovesVersion], "true") == 0;
    settings->numbers = pstrdup(trigger->tgargs[kColumnNumbers]);
    settings->key = arguments_from(trigger, kKeyColumns);
    return is_name(settings->label) && has_arguments(trigger, trigger_arguments(*settings));
}

List* trigger_arguments(const EscrowSettings& settings) {
    List* all = add_argument(NIL, settings.label);
    all = add_argument(all, settings.least_text);
    all = add_argument(all, settings.most_text);
    all = add_argument(all, kPlainUpdateWords[static_cast<int>(settings.plain_updates)]);
    all = add_argument(all, settings.fold_moves_version ? "true" : "false");
    all = add_argument(all, notify_name(settings.notify));
    all = add_argument(all, settings.numbers);
    return add_names(all, settings.key);
}

static Reading read(Oid rel, const Trigger* trigger, Setting* setting) {
    EscrowSettings settings;
    if (!read_settings(trigger, &settings))
        return Reading::kForged;
    const char* most = settings.most_text;
    JsonObject arguments;
    arguments.add("minimum", settings.least_text);
    arguments.add("maximum", most[0] == '\0' ? nullptr : most);
    arguments.add("plain_updates", kPlainUpdateWords[static_cast<int>(settings.plain_updates)]);
    arguments.add_flag("fold_moves_version", settings.fold_moves_version);
    arguments.add("notify", notify_name(settings.notify));
    NameData name;
    setting->key =
        name_counted_column(rel, trigger, &name) ? pstrdup(NameStr(name)) : settings.label;
    setting->arguments = arguments.finish();
    return Reading::kFound;
}

// As numeric(p, s) prints it: a number and its text are the same limit.
static void add_limit(JsonObject* stored, const char* name, const JsonbValue* value, int scale) {
    if (value->type == jbvNull) {
        stored->add(name, *value);
        return;
    }
    const char* text = scalar_text(*value);
    Datum number = DirectFunctionCall3(numeric_in, CStringGetDatum(text),
                                       ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
    number = DirectFunctionCall2(numeric_round, number, Int32GetDatum(scale));
    stored->add(name, DatumGetCString(DirectFunctionCall1(numeric_out, number)));
}

static Jsonb* stored_form(Relation rel, const char* key, Jsonb* arguments) {
    AttrNumber attnum = column_number(rel, key);
    Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), attnum - 1);
    int scale = 0;
    amount_scale(attribute->atttypid, attribute->atttypmod, &scale);
    JsonObject stored;
    each_member(&arguments->root, [&](const char* name, const JsonbValue* value) {
        if (strcmp(name, "minimum") == 0 || strcmp(name, "maximum") == 0)
            add_limit(&stored, name, value, scale);
        else
            stored.add(name, *value);
    });
    return with_stored_notify(stored.finish());
}

extern const Mechanism kEscrowMechanism = {
    .name = "escrow",
    .enable = "enable_escrow",
    .disable = "disable_escrow",
    .key = "column_name",
    .distributed_hint = "Keep the counters in a table that is not distributed.",
    .read = read,
    .stored_form = stored_form,
};

} // namespace interlock::escrow

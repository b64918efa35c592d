#include "escrow/mechanism.h"

#include "escrow/counted_columns.h"
#include "escrow/escrow.h"
#include "table/settings_json.h"

namespace interlock::escrow {

static Reading read(Oid rel, const Trigger* trigger, Setting* setting) {
    PlainUpdates updates;
    if (argument_count(trigger) <= kKeyColumns ||
        !parse_plain_updates(trigger->tgargs[kPlainUpdates], &updates))
        return Reading::kForged;
    const char* most = trigger->tgargs[kMost];
    JsonObject arguments;
    arguments.add("minimum", trigger->tgargs[kLeast]);
    arguments.add("maximum", most[0] == '\0' ? nullptr : most);
    arguments.add("plain_updates", kPlainUpdateWords[static_cast<int>(updates)]);
    arguments.add_flag("fold_moves_version", strcmp(trigger->tgargs[kMovesVersion], "true") == 0);
    NameData name;
    setting->key = name_counted_column(rel, trigger, &name) ? pstrdup(NameStr(name))
                                                            : trigger->tgargs[kColumn];
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
    return stored.finish();
}

extern const Mechanism kEscrowMechanism = {
    .name = "escrow",
    .enable = "enable_escrow",
    .disable = "disable_escrow",
    .key = "column_name",
    .read = read,
    .stored_form = stored_form,
};

} // namespace interlock::escrow

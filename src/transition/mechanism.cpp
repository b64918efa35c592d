#include "table/mechanism.h"

#include "table/settings_json.h"
#include "transition/define.h"
#include "transition/guard.h"
#include "transition/transition.h"

namespace interlock::transition {

// With the names of the schemas, whatever the search_path. Raises nothing for one that is being
// dropped.
static const char* guard_text(const Guard& guard) {
    const char* name = get_func_name(guard.function);
    const char* schema = get_namespace_name(get_func_namespace(guard.function));
    const char* row = format_type_extended(guard.row_type, -1,
                                           FORMAT_TYPE_FORCE_QUALIFY | FORMAT_TYPE_ALLOW_INVALID);
    return psprintf(
        "%s(%s,%s)",
        quote_qualified_identifier(schema != nullptr ? schema : "-", name != nullptr ? name : "-"),
        row, row);
}

// The object of objects with each value replaced.
template <typename State, typename Value>
static Jsonb* map_guards(Jsonb* guards, State&& state, Value&& value_of) {
    JsonObject all;
    each_member(&guards->root, [&](const char* from, const JsonbValue* targets) {
        JsonObject to_states;
        if (targets->type == jbvBinary && JsonContainerIsObject(targets->val.binary.data))
            each_member(targets->val.binary.data, [&](const char* to, const JsonbValue* value) {
                to_states.add(state(to), value_of(value));
            });
        all.add(state(from), to_states.finish());
    });
    return all.finish();
}

static const char* as_it_is(const char* state) { return state; }

static Jsonb* guards_of(const StateMachine& machine) {
    if (machine.guarded == nullptr)
        return JsonObject().finish();
    return map_guards(machine.guarded, as_it_is, [&](const JsonbValue* number) {
        return guard_text(machine.guards[DatumGetInt32(
            DirectFunctionCall1(numeric_int4, NumericGetDatum(number->val.numeric)))]);
    });
}

static Reading read(Oid relid, const Trigger* trigger, Setting* setting) {
    StateMachine machine = {};
    if (!read_declaration(&machine, relid, trigger))
        return Reading::kForged;
    JsonObject arguments;
    arguments.add("transitions", machine.transitions);
    arguments.add("initial", machine.initial);
    arguments.add("on_repeat", machine.rejects_repeats ? kRejectRepeats : kAllowRepeats);
    arguments.add("guards", guards_of(machine));
    setting->key = trigger->tgargs[0];
    setting->arguments = arguments.finish();
    return Reading::kFound;
}

static Jsonb* member_json(JsonbContainer* object, const char* name) {
    return JsonbValueToJsonb(member_of(object, name));
}

static Jsonb* stored_guards(Relation rel, AttrNumber column, Jsonb* transitions, Jsonb* guards) {
    StateMachine machine = machine_to_declare(rel, column, transitions);
    declare_guards(rel, machine, guards); // raises what is wrong with them
    auto canonical = [&](const char* state) {
        return canonical_state(rel, machine.type, machine.typmod, pstrdup(state));
    };
    return map_guards(guards, canonical, [rel](const JsonbValue* value) {
        char* name = pnstrdup(value->val.string.val, value->val.string.len);
        Guard guard = {};
        describe_guard(named_guard(rel, name), &guard);
        return guard_text(guard);
    });
}

static Jsonb* stored_form(Relation rel, const char* key, Jsonb* arguments) {
    JsonbContainer* given = &arguments->root;
    AttrNumber column = column_number(rel, key);
    check_state_column(rel, column);
    Jsonb* transitions = canonical_transitions(rel, column, member_json(given, "transitions"));
    const JsonbValue* initial = member_of(given, "initial");
    JsonObject stored;
    stored.add("transitions", transitions);
    stored.add("initial", initial->type == jbvNull
                              ? nullptr
                              : canonical_states(rel, column, texts_at("initial", initial)));
    stored.add("on_repeat", *member_of(given, "on_repeat"));
    stored.add("guards", stored_guards(rel, column, transitions, member_json(given, "guards")));
    return stored.finish();
}

extern const Mechanism kTransitionMechanism = {
    .name = "transitions",
    .enable = "define_transitions",
    .disable = "drop_transitions",
    .key = "state_column",
    .read = read,
    .stored_form = stored_form,
};

} // namespace interlock::transition

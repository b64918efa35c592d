#include "table/mechanism.h"

#include "ownership/ownership.h"
#include "server/json_builder.h"
#include "table/settings_json.h"

// The settings are
//
//     {"columns": {"price": {"writer": "importer", "on_violation": "reject"},
//                  "stock": {"strategy": "merge", "blind_updates": "allow"}},
//      "groups": [["price", "stock"]]}
//
// A column that has been named before keeps what its rule does not name now. A column is owned or
// shared; another writer of an owned one is handed over.

namespace interlock::ownership {

// --- Reading -------------------------------------------------------------------------------------

static Jsonb* rule_json(const ColumnRule& rule) {
    JsonObject object;
    if (rule.access == Access::kOwned) {
        object.add("writer", rule.writer);
        object.add("on_violation", on_violation_name(rule.on_violation));
        object.add_flag("once_changed", rule.once_changed);
    } else {
        object.add("strategy", strategy_name(rule.strategy));
        object.add("blind_updates", blind_updates_name(rule.blind_updates));
    }
    return object.finish();
}

static Jsonb* columns_json(const ColumnRules& rules) {
    JsonObject object;
    for (int i = 0; i < rules.count; i++)
        if (rules.rules[i].access != Access::kFree)
            object.add(rules.rules[i].name, rule_json(rules.rules[i]));
    return object.finish();
}

static Jsonb* group_json(const ColumnRules& rules, int group) {
    auto** names = static_cast<const char**>(palloc(sizeof(char*) * (rules.count + 1)));
    int count = 0;
    for (int i = 0; i < rules.count; i++)
        if (rules.rules[i].group == group)
            names[count++] = rules.rules[i].name;
    return json_texts(names, count);
}

static Jsonb* groups_json(const ColumnRules& rules) {
    Bitmapset* numbers = nullptr;
    for (int i = 0; i < rules.count; i++)
        if (rules.rules[i].group > 0)
            numbers = bms_add_member(numbers, rules.rules[i].group);
    JsonBuilder builder;
    builder.push(WJB_BEGIN_ARRAY);
    for (int group = -1; (group = bms_next_member(numbers, group)) >= 0;) {
        JsonbValue columns;
        JsonbToJsonbValue(group_json(rules, group), &columns);
        builder.push(WJB_ELEM, &columns);
    }
    return builder.finish(WJB_END_ARRAY);
}

static Reading read(Oid, const Trigger* trigger, Setting* setting) {
    ColumnRules rules;
    if (!read_rules(trigger, &rules))
        return Reading::kForged;
    JsonObject arguments;
    arguments.add("columns", columns_json(rules));
    arguments.add("groups", groups_json(rules));
    setting->arguments = arguments.finish();
    return Reading::kFound;
}

// --- Planning ------------------------------------------------------------------------------------

namespace {

// The columns of one statement. What they have in common is said once: the statement has the
// columns of all rules with the same arguments.
struct Call {
    const char* function;
    const char* arguments; // in addition to the columns
    List* columns;
};

struct Draft {
    JsonbContainer* present; // columns, null: none
    List* removals;          // of Call
    List* changes;
};

} // namespace

static void add_column(List** calls, const char* function, const char* arguments,
                       const char* column) {
    ListCell* cell;
    foreach (cell, *calls) {
        CHECK_FOR_INTERRUPTS();
        auto* call = static_cast<Call*>(lfirst(cell));
        if (strcmp(call->function, function) == 0 && strcmp(call->arguments, arguments) == 0) {
            call->columns = lappend(call->columns, pstrdup(column));
            return;
        }
    }
    auto* call = static_cast<Call*>(palloc(sizeof(Call)));
    *call = {function, arguments, list_make1(pstrdup(column))};
    *calls = lappend(*calls, call);
}

static char* call_arguments(const Call& call) {
    return psprintf("columns => %s%s", array_literal(call.columns), call.arguments);
}

namespace {

// A rule as it is or as it is wanted. Texts that are not there are null.
struct Rule {
    const char* writer;
    const char* on_violation;
    const char* once_changed; // "true" or "false"
    const char* strategy;
    const char* blind_updates;

    bool is_owned() const {
        return writer != nullptr || on_violation != nullptr || once_changed != nullptr;
    }
    bool is_shared() const { return strategy != nullptr || blind_updates != nullptr; }
};

} // namespace

static const char* member_text(JsonbContainer* object, const char* name) {
    const JsonbValue* value = object != nullptr ? member_of(object, name) : nullptr;
    return value != nullptr && value->type == jbvString ? text_at(name, value) : nullptr;
}

static const char* flag_text(bool flag) { return flag ? "true" : "false"; }

static const char* member_flag(JsonbContainer* object, const char* name) {
    const JsonbValue* value = object != nullptr ? member_of(object, name) : nullptr;
    return value != nullptr && value->type == jbvBool ? flag_text(value->val.boolean) : nullptr;
}

static const char* flag_at(const char* path, const JsonbValue* value) {
    if (value->type != jbvBool)
        refuse_setting(path, "must be a boolean");
    return flag_text(value->val.boolean);
}

static Rule rule_in(JsonbContainer* object) {
    return {member_text(object, "writer"), member_text(object, "on_violation"),
            member_flag(object, "once_changed"), member_text(object, "strategy"),
            member_text(object, "blind_updates")};
}

static Rule present_rule(const Draft& draft, const char* column) {
    const JsonbValue* value = draft.present != nullptr ? member_of(draft.present, column) : nullptr;
    return value != nullptr ? rule_in(value->val.binary.data) : Rule{};
}

constexpr const char* kRuleMembers[] = {"writer", "on_violation", "once_changed", "strategy",
                                        "blind_updates"};
constexpr size_t kOnceChanged = 2;

// Null sets the default, as everywhere.
static Rule given_rule(const char* path, JsonbContainer* object) {
    constexpr const char* kDefaults[] = {nullptr, "reject", "false", "retry", "allow"};
    const char* texts[lengthof(kRuleMembers)] = {};
    each_member(object, [&](const char* name, const JsonbValue* value) {
        require_known(path, name, {kRuleMembers, lengthof(kRuleMembers)});
        for (size_t i = 0; i < lengthof(kRuleMembers); i++)
            if (strcmp(name, kRuleMembers[i]) == 0)
                texts[i] = value->type == jbvNull && kDefaults[i] != nullptr ? kDefaults[i]
                           : i == kOnceChanged ? flag_at(path_to(path, name), value)
                                               : text_at(path_to(path, name), value);
    });
    return {texts[0], texts[1], texts[2], texts[3], texts[4]};
}

static const char* first_of(const char* given, const char* present, const char* otherwise) {
    return given != nullptr ? given : present != nullptr ? present : otherwise;
}

// What is not named keeps its value.
static Rule wanted_rule(const char* path, JsonbContainer* object, const Rule& present) {
    constexpr const char* kHint =
        "A column is owned, {\"writer\": \"importer\"}, or shared, "
        "{\"strategy\": \"merge\"}.";
    Rule given = given_rule(path, object);
    if (given.is_owned() && given.is_shared())
        refuse_setting(path, "cannot be both owned and shared", kHint);
    bool is_named = given.is_owned() || given.is_shared();
    if (is_named ? given.is_shared() : present.is_shared())
        return {nullptr, nullptr, nullptr, first_of(given.strategy, present.strategy, "retry"),
                first_of(given.blind_updates, present.blind_updates, "allow")};
    Rule rule = {first_of(given.writer, present.writer, nullptr),
                 first_of(given.on_violation, present.on_violation, "reject"),
                 first_of(given.once_changed, present.once_changed, "false"), nullptr, nullptr};
    if (rule.writer == nullptr)
        refuse_setting(path, "needs a writer or a strategy", kHint);
    return rule;
}

static bool is_same(const char* left, const char* right) {
    return left != nullptr && right != nullptr && strcmp(left, right) == 0;
}

static const char* unless(const char* value, const char* otherwise, const char* name) {
    return is_same(value, otherwise) ? "" : psprintf(", %s => %s", name, quote_literal_cstr(value));
}

static void plan_owned(Draft* draft, const char* column, const Rule& present, const Rule& wanted) {
    bool is_handed_over = present.is_owned() && !is_same(present.writer, wanted.writer);
    if (present.is_shared())
        add_column(&draft->removals, "release_columns", "", column);
    if (is_handed_over)
        add_column(&draft->changes, "hand_over_columns",
                   psprintf(", to_writer => %s", quote_literal_cstr(wanted.writer)), column);
    if (!is_same(present.on_violation, wanted.on_violation) ||
        !is_same(present.once_changed, wanted.once_changed))
        add_column(&draft->changes, "own_columns",
                   psprintf(", writer => %s%s%s", quote_literal_cstr(wanted.writer),
                            unless(wanted.on_violation, "reject", "on_violation"),
                            is_same(wanted.once_changed, "true") ? ", once_changed => true" : ""),
                   column);
}

static void plan_shared(Draft* draft, const char* column, const Rule& present, const Rule& wanted) {
    if (present.is_owned())
        add_column(&draft->removals, "release_columns", "", column);
    else if (is_same(present.strategy, wanted.strategy) &&
             is_same(present.blind_updates, wanted.blind_updates))
        return;
    add_column(&draft->changes, "share_columns",
               psprintf("%s%s", unless(wanted.strategy, "retry", "strategy"),
                        unless(wanted.blind_updates, "allow", "blind_updates")),
               column);
}

static void release(Draft* draft, const char* column) {
    if (present_rule(*draft, column).is_owned() || present_rule(*draft, column).is_shared())
        add_column(&draft->removals, "release_columns", "", column);
}

static void release_all(Draft* draft) {
    if (draft->present != nullptr)
        each_member(draft->present,
                    [&](const char* column, const JsonbValue*) { release(draft, column); });
}

static void plan_columns(Draft* draft, const char* path, const JsonbValue* wanted) {
    JsonbContainer* columns = object_at(path, wanted);
    if (columns == nullptr) {
        release_all(draft);
        return;
    }
    each_member(columns, [&](const char* column, const JsonbValue* value) {
        JsonbContainer* object = object_at(path_to(path, column), value);
        if (object == nullptr) {
            release(draft, column);
            return;
        }
        Rule present = present_rule(*draft, column);
        Rule rule = wanted_rule(path_to(path, column), object, present);
        if (rule.is_owned())
            plan_owned(draft, column, present, rule);
        else
            plan_shared(draft, column, present, rule);
    });
}

// --- Groups --------------------------------------------------------------------------------------

static bool has_group(JsonbContainer* groups, JsonbValue* group) {
    bool found = false;
    Jsonb* json = JsonbValueToJsonb(group);
    if (groups != nullptr)
        each_element(groups, [&](const JsonbValue* each) {
            JsonbValue copy = *each;
            found = found || (each->type == jbvBinary && same_json(JsonbValueToJsonb(&copy), json));
        });
    return found;
}

// The table has these groups and no others.
static void plan_groups(SettingsPlan* plan, const char* path, JsonbContainer* present,
                        const JsonbValue* wanted) {
    bool is_none = wanted->type == jbvNull;
    if (!is_none && (wanted->type != jbvBinary || !JsonContainerIsArray(wanted->val.binary.data)))
        refuse_setting(path, "must be an array of arrays of columns");
    JsonbContainer* groups = is_none ? nullptr : wanted->val.binary.data;
    if (present != nullptr)
        each_element(present, [&](const JsonbValue* group) {
            JsonbValue copy = *group;
            if (!has_group(groups, &copy))
                plan->remove("ungroup_columns", array_literal(texts_at(path, group)));
        });
    if (groups == nullptr)
        return;
    each_element(groups, [&](const JsonbValue* group) {
        List* columns = texts_at(path, group);
        if (list_length(columns) < 2)
            refuse_setting(path, "has a group of fewer than two columns");
        JsonbValue copy = *group;
        if (!has_group(present, &copy))
            plan->set("group_columns", array_literal(columns));
    });
}

static JsonbContainer* container_of(Jsonb* object, const char* name) {
    return object != nullptr ? member_of(&object->root, name)->val.binary.data : nullptr;
}

static void plan_ownership(SettingsPlan* plan, Relation, Jsonb* present, const JsonbValue* wanted) {
    constexpr const char* kMembers[] = {"columns", "groups"};
    constexpr const char* kPath = "ownership";
    JsonbContainer* object = object_at(kPath, wanted);
    JsonbContainer* groups = container_of(present, "groups");
    Draft draft = {container_of(present, "columns"), NIL, NIL};
    if (object == nullptr) {
        release_all(&draft);
        plan_groups(plan, kPath, groups, wanted);
    } else {
        each_member(object, [&](const char* name, const JsonbValue* value) {
            require_known(kPath, name, {kMembers, lengthof(kMembers)});
            if (strcmp(name, "columns") == 0)
                plan_columns(&draft, path_to(kPath, name), value);
            else
                plan_groups(plan, path_to(kPath, name), groups, value);
        });
    }
    ListCell* cell;
    foreach (cell, draft.removals) {
        auto* call = static_cast<const Call*>(lfirst(cell));
        plan->remove(call->function, call_arguments(*call));
    }
    foreach (cell, draft.changes) {
        auto* call = static_cast<const Call*>(lfirst(cell));
        plan->set(call->function, call_arguments(*call));
    }
}

extern const Mechanism kOwnershipMechanism = {
    .name = "ownership",
    .enable = "own_columns",
    .disable = "release_columns",
    .read = read,
    .plan = plan_ownership,
};

} // namespace interlock::ownership

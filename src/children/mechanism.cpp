#include "table/mechanism.h"

#include "children/children.h"
#include "server/json_builder.h"
#include "table/catalog_trigger.h"
#include "table/name.h"
#include "table/settings_json.h"

namespace interlock::children {

constexpr const char* kForeignKeys = "foreign_keys";

// --- Reading -------------------------------------------------------------------------------------

static Jsonb* columns_json(Oid relid, const CallShape& shape) {
    const char* names[INDEX_MAX_KEYS];
    for (int i = 0; i < shape.count; i++) {
        const char* name = get_attname(relid, shape.columns[i], true);
        names[i] = name != nullptr ? name : "-"; // it is being dropped
    }
    return json_texts(names, shape.count);
}

namespace {

struct SeenKey {
    CallShape shape;
    bool has[kChildEvents]; // triggers
};

} // namespace

static bool is_same_key(const CallShape& left, const CallShape& right) {
    return left.parent == right.parent && left.count == right.count &&
           memcmp(left.columns, right.columns, sizeof(AttrNumber) * left.count) == 0;
}

static SeenKey* key_of(List** keys, const CallShape& shape) {
    ListCell* cell;
    foreach (cell, *keys) {
        auto* key = static_cast<SeenKey*>(lfirst(cell));
        if (is_same_key(key->shape, shape))
            return key;
    }
    auto* key = static_cast<SeenKey*>(palloc(sizeof(SeenKey)));
    *key = {shape, {}};
    *keys = lappend(*keys, key);
    return key;
}

// All of the table's.
static List* seen_keys(Oid relid) {
    List* keys = NIL;
    MemoryContext memory = CurrentMemoryContext;
    each_trigger_of("children_trigger", relid, [&](Oid, const Trigger* trigger) {
        ChildSettings settings;
        if (!read_settings(trigger, &settings))
            return;
        SeenKey* key = in_context(memory, [&] { return key_of(&keys, settings.call); });
        key->has[settings.event] = true;
    });
    return keys;
}

// Those that have all their triggers: guard_children creates the missing ones of the others.
static Jsonb* foreign_keys_to(Oid relid, Oid parent, List* keys) {
    JsonBuilder builder;
    builder.push(WJB_BEGIN_ARRAY);
    ListCell* cell;
    foreach (cell, keys) {
        auto* key = static_cast<const SeenKey*>(lfirst(cell));
        if (key->shape.parent != parent || !key->has[kChildInserts] || !key->has[kChildUpdates] ||
            !key->has[kChildDeletes])
            continue;
        JsonbValue columns;
        JsonbToJsonbValue(columns_json(relid, key->shape), &columns);
        builder.push(WJB_ELEM, &columns);
    }
    return builder.finish(WJB_END_ARRAY);
}

static Reading read(Oid relid, const Trigger* trigger, Setting* setting) {
    ChildSettings settings;
    if (!read_settings(trigger, &settings))
        return Reading::kForged;
    Oid parent = settings.call.parent;
    if (get_rel_name(parent) == nullptr) // it is being dropped
        return Reading::kNone;
    JsonObject arguments;
    arguments.add(kForeignKeys, foreign_keys_to(relid, parent, seen_keys(relid)));
    setting->key = qualified_name(parent);
    setting->arguments = arguments.finish();
    return Reading::kFound;
}

// --- Planning ------------------------------------------------------------------------------------

static const char* parent_sql(const char* parent) {
    return psprintf("parent => %s", quote_literal_cstr(parent));
}

static bool has_key(JsonbContainer* keys, const JsonbValue* key) {
    bool found = false;
    each_element(keys, [&](const JsonbValue* each) { found = found || same_value(*each, *key); });
    return found;
}

static bool has_all(JsonbContainer* keys, JsonbContainer* others) {
    bool all = true;
    each_element(others, [&](const JsonbValue* key) { all = all && has_key(keys, key); });
    return all;
}

// The foreign keys of one parent; `present` is null when there are none. One of several is not
// removed alone.
static void plan_keys(SettingsPlan* plan, const char* path, const char* parent,
                      JsonbContainer* present, const JsonbValue* wanted) {
    if (wanted == nullptr || wanted->type == jbvNull) { // the only one that there is
        if (present == nullptr || JsonContainerSize(present) == 0)
            plan->set("guard_children", parent_sql(parent));
        return;
    }
    if (wanted->type != jbvBinary || !JsonContainerIsArray(wanted->val.binary.data))
        refuse_setting(path, "must be an array of arrays of columns");
    JsonbContainer* keys = wanted->val.binary.data;
    each_element(keys, [&](const JsonbValue* key) { texts_at(path, key); });
    bool begins_anew = present != nullptr && !has_all(keys, present);
    if (begins_anew)
        plan->remove("unguard_children", parent_sql(parent));
    each_element(keys, [&](const JsonbValue* key) {
        if (begins_anew || present == nullptr || !has_key(present, key))
            plan->set("guard_children", psprintf("%s, foreign_key => %s", parent_sql(parent),
                                                 array_literal(texts_at(path, key))));
    });
}

static JsonbContainer* present_keys(Jsonb* present, const char* parent) {
    const JsonbValue* object = present != nullptr ? member_of(&present->root, parent) : nullptr;
    return object != nullptr ? member_of(object->val.binary.data, kForeignKeys)->val.binary.data
                             : nullptr;
}

static void plan_parent(SettingsPlan* plan, Jsonb* present, const char* name,
                        const JsonbValue* wanted) {
    Oid table = DatumGetObjectId(DirectFunctionCall1(regclassin, CStringGetDatum(name)));
    const char* parent = get_rel_name(table) != nullptr ? qualified_name(table) : name;
    const char* path = path_to("guard_children", name);
    JsonbContainer* there = present_keys(present, parent);
    JsonbContainer* object = object_at(path, wanted);
    if (object == nullptr) {
        if (there != nullptr)
            plan->remove("unguard_children", parent_sql(parent));
        return;
    }
    each_member(object, [&](const char* member, const JsonbValue*) {
        require_known(path, member, {&kForeignKeys, 1});
    });
    plan_keys(plan, path_to(path, kForeignKeys), parent, there, member_of(object, kForeignKeys));
}

static void plan_children(SettingsPlan* plan, Relation, Jsonb* present, const JsonbValue* wanted) {
    JsonbContainer* object = object_at("guard_children", wanted);
    if (object == nullptr && present == nullptr)
        return;
    JsonbValue nothing = json_null();
    each_member(object != nullptr ? object : &present->root,
                [&](const char* name, const JsonbValue* value) {
                    plan_parent(plan, present, name, object != nullptr ? value : &nothing);
                });
}

extern const Mechanism kChildrenMechanism = {
    .name = "guard_children",
    .enable = "guard_children",
    .disable = "unguard_children",
    .key = "parent",
    .distributed_hint = "Neither the parent nor its children can be distributed tables.",
    .read = read,
    .plan = plan_children,
};

} // namespace interlock::children

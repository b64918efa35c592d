// configure(): brings a table to the settings that it is given, by the functions that users call
// for one mechanism, and by as few of them as possible.

#include "configure/arguments.h"
#include "server/arguments.h"
#include "server/scope.h"
#include "table/plan.h"
#include "table/relation.h"

namespace interlock::configure {

static void check_members(const Mechanisms& mechanisms, Jsonb* settings);
static List* plan_statements(Oid relid, LOCKMODE mode, const Mechanisms& mechanisms,
                             Jsonb* settings);
static void plan_mechanism(SettingsPlan* plan, Relation rel, const Mechanism& mechanism,
                           Jsonb* present, const JsonbValue* wanted);

extern "C" {
PG_FUNCTION_INFO_V1(configure);

// configure(rel, settings, dry_run)
Datum configure(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Oid relid = arguments.relation(0);
    Jsonb* settings = arguments.jsonb(1, "settings");
    bool dry_run = arguments.boolean(2, "dry_run");
    InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    Mechanisms mechanisms = all_mechanisms();
    check_members(mechanisms, settings);
    // Where there is nothing to do, no session has to wait. Otherwise what is there is read again
    // under a lock that excludes other calls, which upgrading the first one could deadlock with.
    List* statements = plan_statements(relid, AccessShareLock, mechanisms, settings);
    if (statements != NIL && !dry_run) {
        statements = plan_statements(relid, ShareUpdateExclusiveLock, mechanisms, settings);
        ListCell* cell;
        foreach (cell, statements)
            with_spi([&] { run_command(static_cast<const char*>(lfirst(cell))); });
    }
    ListCell* cell;
    foreach (cell, statements) {
        Datum value = CStringGetTextDatum(static_cast<const char*>(lfirst(cell)));
        bool is_null = false;
        tuplestore_putvalues(output->setResult, output->setDesc, &value, &is_null);
    }
    return 0;
}
}

static void check_members(const Mechanisms& mechanisms, Jsonb* settings) {
    const char* names[kMostFacets];
    for (int i = 0; i < mechanisms.count; i++)
        names[i] = mechanisms.all[i]->name;
    if (!JB_ROOT_IS_OBJECT(settings))
        refuse_argument("settings", "must be a jsonb object",
                        "For example {\"versioning\": {\"version_column\": \"version\"}}.");
    each_member(&settings->root, [&](const char* name, const JsonbValue* value) {
        require_known("", name, {names, mechanisms.count});
        object_at(name, value);
    });
}

// Keeps the lock only if it is a strong one.
static List* plan_statements(Oid relid, LOCKMODE mode, const Mechanisms& mechanisms,
                             Jsonb* settings) {
    Relation rel = open_own_table(relid, mode);
    TableSettings present = read_settings(mechanisms, relid);
    SettingsPlan plan(typed_name(rel));
    for (int i = 0; i < mechanisms.count; i++) {
        const Mechanism& mechanism = *mechanisms.all[i];
        const JsonbValue* wanted = member_of(&settings->root, mechanism.name);
        if (wanted == nullptr)
            continue;
        SettingsPlan own(typed_name(rel));
        if (mechanism.plan != nullptr)
            mechanism.plan(&own, rel, present.settings[i], wanted);
        else
            plan_mechanism(&own, rel, mechanism, present.settings[i], wanted);
        plan.add(own);
    }
    relation_close(rel, mode == AccessShareLock ? mode : NoLock);
    return plan.statements();
}

namespace {

// One instance of a mechanism.
struct Instance {
    Relation rel;
    const Mechanism* mechanism;
    const SettingArguments* arguments;
    const char* path;
    const char* key;           // null: there is one for the table
    const JsonbValue* present; // null: it is not there
};

} // namespace

static const char* key_sql(const Instance& instance) {
    return instance.key == nullptr
               ? ""
               : psprintf("%s => %s", instance.mechanism->key, quote_literal_cstr(instance.key));
}

// What is named, else what is there, else the default. JSON null sets the default.
static JsonbValue wanted_value(const Instance& instance, const SettingArgument& argument,
                               JsonbContainer* wanted) {
    const char* path = path_to(instance.path, argument.name);
    const JsonbValue* named = member_of(wanted, argument.name);
    const JsonbValue* present = instance.present != nullptr
                                    ? member_of(instance.present->val.binary.data, argument.name)
                                    : nullptr;
    if (named == nullptr && present != nullptr)
        return *present;
    if (named != nullptr && named->type != jbvNull)
        return typed_value(path, argument.type, named);
    if (!argument.has_default)
        refuse_setting(path, named == nullptr ? "is missing" : "must not be null");
    return argument.default_value;
}

// The arguments of the call; those that have their default are left out.
static const char* call_sql(const Instance& instance, Jsonb* values) {
    StringInfoData sql;
    initStringInfo(&sql);
    appendStringInfoString(&sql, key_sql(instance));
    for (const SettingArgument& argument : *instance.arguments) {
        const JsonbValue* value = member_of(&values->root, argument.name);
        if (argument.has_default && same_value(*value, argument.default_value))
            continue;
        appendStringInfo(&sql, "%s%s => %s", sql.len > 0 ? ", " : "", argument.name,
                         sql_value(argument.type, *value));
    }
    return sql.data;
}

static void plan_removal(SettingsPlan* plan, const Instance& instance) {
    if (instance.present != nullptr)
        plan->remove(instance.mechanism->disable, key_sql(instance));
}

static void plan_instance(SettingsPlan* plan, const Instance& instance, JsonbContainer* wanted) {
    each_member(wanted, [&](const char* name, const JsonbValue*) {
        require_known(instance.path, name, instance.arguments->names());
    });
    JsonObject object;
    for (const SettingArgument& argument : *instance.arguments)
        object.add(argument.name, wanted_value(instance, argument, wanted));
    Jsonb* values = object.finish();
    Jsonb* stored = values;
    if (instance.mechanism->stored_form != nullptr)
        stored = instance.mechanism->stored_form(instance.rel, instance.key, values);
    if (instance.present == nullptr || !same_json(stored, to_json(*instance.present)))
        plan->set(instance.mechanism->enable, call_sql(instance, values));
}

static void plan_one(SettingsPlan* plan, const Instance& instance, const JsonbValue* wanted) {
    JsonbContainer* object = object_at(instance.path, wanted);
    if (object == nullptr)
        plan_removal(plan, instance);
    else
        plan_instance(plan, instance, object);
}

static void plan_mechanism(SettingsPlan* plan, Relation rel, const Mechanism& mechanism,
                           Jsonb* present, const JsonbValue* wanted) {
    SettingArguments arguments = arguments_of(mechanism);
    JsonbValue there = json_null();
    if (present != nullptr)
        JsonbToJsonbValue(present, &there);
    Instance instance = {rel, &mechanism, &arguments, mechanism.name, nullptr, nullptr};
    if (mechanism.key == nullptr) {
        instance.present = present != nullptr ? &there : nullptr;
        plan_one(plan, instance, wanted);
        return;
    }
    JsonbContainer* object = object_at(mechanism.name, wanted);
    if (object == nullptr && present == nullptr)
        return;
    JsonbValue nothing = json_null();
    each_member(object != nullptr ? object : &present->root, [&](const char* name,
                                                                 const JsonbValue* value) {
        instance.path = path_to(mechanism.name, name);
        instance.key = typed_key(arguments.key_type, name);
        instance.present = present != nullptr ? member_of(&present->root, instance.key) : nullptr;
        plan_one(plan, instance, object != nullptr ? value : &nothing);
    });
}

} // namespace interlock::configure

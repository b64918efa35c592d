#include "table/settings.h"

#include "server/concept.h"
#include "server/scope.h"
#include "table/catalog_trigger.h"
#include "table/own_table.h"
#include "table/part.h"
#include "table/settings_json.h"

namespace interlock::inline table {

int Mechanisms::find(Oid function) const {
    for (int i = 0; i < count; i++)
        if (functions[i] == function)
            return i;
    return -1;
}

Mechanisms all_mechanisms() {
    Mechanisms mechanisms = {};
    for (const Concept* each : concepts())
        for (int i = 0; i < each->part_count; i++) {
            const TablePart& part = each->parts[i];
            if (part.mechanism == nullptr)
                continue;
            mechanisms.all[mechanisms.count] = part.mechanism;
            mechanisms.functions[mechanisms.count++] = own_trigger_function(part.trigger_function);
        }
    return mechanisms;
}

namespace {

// What the triggers of one table say.
struct Found {
    TableSettings settings;
    JsonObject* instances[kMostParts]; // of mechanisms with a key
    size_t bytes[kMostParts];
};

} // namespace

static Jsonb* copy_json(const Jsonb* json) {
    auto* copy = static_cast<Jsonb*>(palloc(VARSIZE(json)));
    memcpy(copy, json, VARSIZE(json));
    return copy;
}

static void add_instance(Found* found, int place, const Setting& setting) {
    if (found->instances[place] == nullptr) {
        found->instances[place] = static_cast<JsonObject*>(palloc(sizeof(JsonObject)));
        *found->instances[place] = JsonObject();
    }
    found->instances[place]->add(pstrdup(setting.key), copy_json(setting.arguments));
}

// Of several triggers of a mechanism without a key the last one counts.
static void add_setting(Found* found, int place, const Setting& setting) {
    Jsonb** one = &found->settings.settings[place];
    size_t bytes = VARSIZE(setting.arguments);
    if (setting.key != nullptr)
        bytes += found->bytes[place] + strlen(setting.key);
    found->bytes[place] = bytes;
    found->settings.is_too_long[place] = bytes > kMostSettingBytes;
    if (*one != nullptr)
        pfree(*one);
    *one = nullptr;
    if (bytes > kMostSettingBytes)
        return;
    if (setting.key == nullptr)
        *one = copy_json(setting.arguments);
    else
        add_instance(found, place, setting);
}

TableSettings read_settings(const Mechanisms& mechanisms, Oid relid) {
    Found found = {};
    MemoryContext memory = CurrentMemoryContext;
    each_trigger(relid, [&](const CatalogTriggers& triggers, HeapTuple row, Oid, Trigger* trigger) {
        int place = mechanisms.find(trigger->tgfoid);
        if (place < 0)
            return;
        in_scratch([&] {
            Setting setting = {};
            Reading reading = read_arguments(triggers, row, trigger)
                                  ? mechanisms.all[place]->read(relid, trigger, &setting)
                                  : Reading::kForged;
            in_context(memory, [&] {
                if (reading == Reading::kFound)
                    add_setting(&found, place, setting);
                else if (reading == Reading::kForged)
                    found.settings.forged[place] = pstrdup(trigger->tgname);
                return 0;
            });
        });
    });
    for (int i = 0; i < mechanisms.count; i++) {
        if (found.instances[i] != nullptr)
            found.settings.settings[i] = found.instances[i]->finish();
        if (found.settings.is_too_long[i])
            found.settings.settings[i] = nullptr;
        if (found.settings.settings[i] != nullptr)
            found.settings.settings[i] = with_sorted_arrays(found.settings.settings[i]);
    }
    return found.settings;
}

void require_settings(const TableSettings& settings, Oid relid) {
    for (bool is_too_long : settings.is_too_long)
        if (is_too_long)
            ereport(ERROR,
                    (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                     errmsg("the settings of table \"%s\" are too long", get_rel_name(relid)),
                     errhint("Its owner can drop triggers of functions in schema "
                             "interlock_internal.")));
}

List* configured_tables(const Mechanisms& mechanisms) {
    List* tables = NIL;
    each_trigger(InvalidOid, [&](const CatalogTriggers&, HeapTuple, Oid table, Trigger* trigger) {
        if (mechanisms.find(trigger->tgfoid) >= 0 && (tables == NIL || llast_oid(tables) != table))
            tables = lappend_oid(tables, table);
    });
    return tables;
}

} // namespace interlock::inline table

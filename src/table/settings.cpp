#include "table/settings.h"

#include "server/concept.h"
#include "table/catalog_trigger.h"
#include "table/own_table.h"
#include "table/part.h"
#include "table/settings_json.h"

namespace interlock {

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
};

void add_setting(Found* found, const Mechanism& mechanism, int place, const Setting& setting) {
    if (mechanism.key == nullptr) {
        found->settings.settings[place] = setting.arguments; // the last trigger counts
        return;
    }
    if (found->instances[place] == nullptr) {
        found->instances[place] = static_cast<JsonObject*>(palloc(sizeof(JsonObject)));
        *found->instances[place] = JsonObject();
    }
    found->instances[place]->add(setting.key, setting.arguments);
}

void add_trigger(Found* found, const Mechanisms& mechanisms, int place, Oid relid,
                 const CatalogTriggers& triggers, HeapTuple row, Trigger* trigger) {
    const Mechanism& mechanism = *mechanisms.all[place];
    Setting setting = {};
    Reading reading = read_arguments(triggers, row, trigger)
                          ? mechanism.read(relid, trigger, &setting)
                          : Reading::kForged;
    if (reading == Reading::kFound)
        add_setting(found, mechanism, place, setting);
    else if (reading == Reading::kForged)
        found->settings.forged[place] = pstrdup(trigger->tgname);
}

} // namespace

TableSettings read_settings(const Mechanisms& mechanisms, Oid relid) {
    Found found = {};
    CatalogTriggers triggers = begin_triggers(relid);
    HeapTuple row;
    Oid table;
    Trigger trigger;
    while (next_trigger(&triggers, &row, &table, &trigger)) {
        int place = mechanisms.find(trigger.tgfoid);
        if (place >= 0)
            add_trigger(&found, mechanisms, place, relid, triggers, row, &trigger);
    }
    end_triggers(&triggers);
    for (int i = 0; i < mechanisms.count; i++) {
        if (found.instances[i] != nullptr)
            found.settings.settings[i] = found.instances[i]->finish();
        if (found.settings.settings[i] != nullptr)
            found.settings.settings[i] = with_sorted_arrays(found.settings.settings[i]);
    }
    return found.settings;
}

List* configured_tables(const Mechanisms& mechanisms) {
    List* tables = NIL;
    CatalogTriggers triggers = begin_triggers(InvalidOid);
    HeapTuple row;
    Oid table;
    Trigger trigger;
    while (next_trigger(&triggers, &row, &table, &trigger))
        if (mechanisms.find(trigger.tgfoid) >= 0 && (tables == NIL || llast_oid(tables) != table))
            tables = lappend_oid(tables, table);
    end_triggers(&triggers);
    return tables;
}

} // namespace interlock

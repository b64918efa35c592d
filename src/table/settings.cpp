#include "table/settings.h"

#include "server/concept.h"
#include "server/scope.h"
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

// What the triggers of one table say. What a trigger's arguments take while they are read is freed
// behind each: any role can make a thousand triggers with megabytes of them.
struct Found {
    TableSettings settings;
    JsonObject* instances[kMostParts]; // of mechanisms with a key
    size_t bytes[kMostParts];
    void* kept[kMostParts];
    int triggers[kMostParts];
    Oid last[kMostParts]; // the last trigger of a mechanism without a key, if it is not the first
    MemoryContext memory;
};

Jsonb* copy_json(const Jsonb* json) {
    auto* copy = static_cast<Jsonb*>(palloc(VARSIZE(json)));
    memcpy(copy, json, VARSIZE(json));
    return copy;
}

void add_setting(Found* found, const Mechanism& mechanism, int place, const Setting& setting) {
    found->bytes[place] += VARSIZE(setting.arguments);
    found->bytes[place] += setting.key != nullptr ? strlen(setting.key) : 0;
    if (found->bytes[place] > kMostSettingBytes) {
        found->settings.is_too_long[place] = true;
        return;
    }
    Jsonb* arguments = copy_json(setting.arguments);
    if (mechanism.key == nullptr) {
        found->settings.settings[place] = arguments;
        return;
    }
    if (found->instances[place] == nullptr) {
        found->instances[place] = static_cast<JsonObject*>(palloc(sizeof(JsonObject)));
        *found->instances[place] = JsonObject();
    }
    found->instances[place]->add(pstrdup(setting.key), arguments);
}

void note_setting(Found* found, const Mechanism& mechanism, int place, const Trigger& trigger,
                  const Setting& setting) {
    if (!setting.wants_arguments)
        found->last[place] = trigger.tgoid;
    else
        add_setting(found, mechanism, place, setting);
}

Reading read_trigger(const Found& found, const Mechanism& mechanism,
                     const CatalogTriggers& triggers, HeapTuple row, Trigger* trigger,
                     Setting* setting) {
    Oid relid = reinterpret_cast<Form_pg_trigger>(GETSTRUCT(row))->tgrelid;
    setting->memory = found.memory;
    return read_arguments(triggers, row, trigger) ? mechanism.read(relid, trigger, setting)
                                                  : Reading::kForged;
}

void add_trigger(Found* found, const Mechanisms& mechanisms, int place,
                 const CatalogTriggers& triggers, HeapTuple row, Trigger* trigger) {
    const Mechanism& mechanism = *mechanisms.all[place];
    Setting setting = {};
    setting.kept = found->kept[place];
    setting.wants_arguments = mechanism.key != nullptr || found->triggers[place]++ == 0;
    Reading reading = read_trigger(*found, mechanism, triggers, row, trigger, &setting);
    found->kept[place] = setting.kept;
    in_context(found->memory, [&] {
        if (reading == Reading::kFound)
            note_setting(found, mechanism, place, *trigger, setting);
        else if (reading == Reading::kForged)
            found->settings.forged[place] = pstrdup(trigger->tgname);
        return 0;
    });
}

// The last of several triggers of a mechanism without a key.
void add_if_last(Found* found, const Mechanisms& mechanisms, int place,
                 const CatalogTriggers& triggers, HeapTuple row, Trigger* trigger) {
    if (found->last[place] != trigger->tgoid)
        return;
    Setting setting = {};
    setting.wants_arguments = true;
    found->bytes[place] = 0;
    if (read_trigger(*found, *mechanisms.all[place], triggers, row, trigger, &setting) ==
        Reading::kFound)
        in_context(found->memory, [&] {
            add_setting(found, *mechanisms.all[place], place, setting);
            return 0;
        });
}

bool has_last(const Found& found) {
    for (Oid trigger : found.last)
        if (OidIsValid(trigger))
            return true;
    return false;
}

// visit(found, mechanisms, place, triggers, row, trigger) for each of a mechanism's.
template <typename Visit>
void each_setting(Found* found, const Mechanisms& mechanisms, Oid relid, Visit&& visit) {
    MemoryContext scratch =
        AllocSetContextCreate(found->memory, "interlock setting", ALLOCSET_DEFAULT_SIZES);
    each_trigger(relid, [&](const CatalogTriggers& triggers, HeapTuple row, Oid, Trigger* trigger) {
        int place = mechanisms.find(trigger->tgfoid);
        if (place < 0)
            return;
        in_context(scratch, [&] {
            visit(found, mechanisms, place, triggers, row, trigger);
            return 0;
        });
        MemoryContextReset(scratch);
    });
    MemoryContextDelete(scratch);
}

} // namespace

TableSettings read_settings(const Mechanisms& mechanisms, Oid relid) {
    Found found = {};
    found.memory = CurrentMemoryContext;
    each_setting(&found, mechanisms, relid, add_trigger);
    if (has_last(found))
        each_setting(&found, mechanisms, relid, add_if_last);
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

} // namespace interlock

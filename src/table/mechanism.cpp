#include "table/mechanism.h"

#include "server/concept.h"
#include "table/catalog_trigger.h"
#include "table/facet.h"
#include "table/settings_json.h"

namespace interlock::inline table {

char* SettingsPlan::statement(const char* function, const char* arguments) const {
    return psprintf("SELECT %s(%s%s%s);", own_function(function), quote_literal_cstr(table_),
                    arguments[0] != '\0' ? ", " : "", arguments);
}

int Mechanisms::find(Oid function) const {
    for (int i = 0; i < count; i++)
        if (functions[i] == function)
            return i;
    return -1;
}

Mechanisms all_mechanisms() {
    Mechanisms mechanisms = {};
    for (const Concept* each : concepts())
        for (int i = 0; i < each->facet_count; i++) {
            const TableFacet& facet = each->facets[i];
            if (facet.mechanism == nullptr)
                continue;
            mechanisms.all[mechanisms.count] = facet.mechanism;
            mechanisms.functions[mechanisms.count++] = own_trigger_function(facet.trigger_function);
        }
    return mechanisms;
}

// Null if the function enables none.
static const Mechanism* mechanism_of(const char* enable) {
    Mechanisms mechanisms = all_mechanisms();
    for (int i = 0; i < mechanisms.count; i++)
        if (strcmp(mechanisms.all[i]->enable, enable) == 0)
            return mechanisms.all[i];
    return nullptr;
}

static void require_local_partitions(Relation rel) {
    if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
        return;
    ListCell* cell;
    foreach (cell, find_all_inheritors(RelationGetRelid(rel), NoLock, nullptr))
        if (get_rel_relkind(lfirst_oid(cell)) == RELKIND_FOREIGN_TABLE)
            ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                            errmsg("partition \"%s\" of table \"%s\" is a foreign table",
                                   get_rel_name(lfirst_oid(cell)), RelationGetRelationName(rel)),
                            errhint("Detach it, or call the function for the other partitions.")));
}

void require_distributable(Relation rel, Distribution distribution, const char* enable) {
    if (distribution == Distribution::kNone)
        return;
    const Mechanism* mechanism = mechanism_of(enable);
    if (mechanism != nullptr && mechanism->distributed_hint != nullptr)
        refuse_distributed(rel, enable, mechanism->distributed_hint);
}

void require_own(Relation rel, const TableInfo* info, const OwnTrigger* own, const char* enable) {
    if (own == nullptr || !own->well_formed)
        raise_forged(rel, own != nullptr ? own->trigger : enable, enable);
    if (own->twin != nullptr)
        raise_twins(rel, own->trigger, own->twin, enable);
    require_distributable(rel, info->distribution, enable);
}

void require_enableable(Relation rel, const char* function) {
    if (mechanism_of(function) == nullptr)
        return;
    require_distributable(rel, distribution_of(RelationGetRelid(rel)), function);
    require_local_partitions(rel);
}

namespace {

// What the triggers of one table say, of each mechanism.
struct Found {
    MemoryContext memory;
    TableSettings settings;
    JsonObject* instances[kMostFacets]; // of mechanisms with a key
    size_t bytes[kMostFacets];
};

} // namespace

// Several triggers are more than jsonb can have, although none of them is too long.
static bool is_too_long(Found* found, int place, const Setting& setting) {
    constexpr size_t kMostBytes = 16 * 1024 * 1024;
    found->bytes[place] += VARSIZE(setting.arguments);
    return found->bytes[place] > kMostBytes;
}

// Of several triggers of a mechanism without a key the last one counts.
static void add_setting(Found* found, int place, const Setting& setting) {
    auto* copy = static_cast<Jsonb*>(palloc(VARSIZE(setting.arguments)));
    memcpy(copy, setting.arguments, VARSIZE(setting.arguments));
    if (setting.key == nullptr) {
        found->settings.settings[place] = copy;
        return;
    }
    if (found->instances[place] == nullptr) {
        found->instances[place] = static_cast<JsonObject*>(palloc(sizeof(JsonObject)));
        *found->instances[place] = JsonObject();
    }
    found->instances[place]->add(pstrdup(setting.key), copy);
}

static void read_trigger(Found* found, int place, const Mechanism& mechanism,
                         CatalogTriggers* triggers) {
    Setting setting = {};
    Reading reading = triggers->read_arguments()
                          ? mechanism.read(triggers->table, &triggers->trigger, &setting)
                          : Reading::kForged;
    if (reading == Reading::kFound && is_too_long(found, place, setting))
        reading = Reading::kForged;
    in_context(found->memory, [&] {
        if (reading == Reading::kFound)
            add_setting(found, place, setting);
        else if (reading == Reading::kForged)
            found->settings.forged[place] = pstrdup(triggers->trigger.tgname);
        return 0;
    });
}

TableSettings read_settings(const Mechanisms& mechanisms, Oid relid) {
    Found found = {};
    found.memory = CurrentMemoryContext;
    CatalogTriggers triggers(relid);
    while (triggers.next())
        if (int place = mechanisms.find(triggers.trigger.tgfoid); place >= 0)
            in_scratch([&] { read_trigger(&found, place, *mechanisms.all[place], &triggers); });
    for (int i = 0; i < mechanisms.count; i++) {
        Jsonb** settings = &found.settings.settings[i];
        if (found.instances[i] != nullptr)
            *settings = found.instances[i]->finish();
        if (*settings != nullptr)
            *settings = with_sorted_arrays(*settings);
    }
    return found.settings;
}

List* configured_tables(const Mechanisms& mechanisms) {
    List* tables = NIL;
    CatalogTriggers triggers(InvalidOid);
    while (triggers.next())
        if (mechanisms.find(triggers.trigger.tgfoid) >= 0 &&
            (tables == NIL || llast_oid(tables) != triggers.table))
            tables = lappend_oid(tables, triggers.table);
    return tables;
}

} // namespace interlock::inline table

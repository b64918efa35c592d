// What a concept does for a table: the metadata that it keeps of it, the trigger function that
// configures it, and its check of each change of a row.
//
// The folders below the concepts name no concept. They load, keep and run the facets in
// Concept::facets (server/concept.h).
#pragma once

#include "table/info.h"
#include "table/trigger.h"

namespace interlock::inline table {

// What a function wants to do with a column. See TableFacet::refuse_use.
enum class ColumnUse : uint8 {
    kState,    // declared transitions move it
    kCompared, // its writers must have compared the version of the row
    kMerged,   // changes of several writers at once are combined
    kOwned,    // who may write it depends on the writer
};

struct TableFacet {
    // The place of the facet in TableInfo::facets, set when the library is loaded. The concept
    // reads the facet by facet_of(). It fills the facet in by one of the functions below, or at its
    // first use, in memory of TableInfo::memory.
    int* number;

    // The name of the trigger function whose triggers on a table configure the facet.
    const char* trigger_function = nullptr;

    // Called for each such trigger, in the order of their names. Raises nothing, because any role
    // can create a trigger with any arguments on its own table.
    void (*load_trigger)(TableInfo* info, const Trigger* trigger) = nullptr;

    // The configuration of such a trigger as JSON. Null if users do not configure it.
    const Mechanism* mechanism = nullptr;

    // Called for every table.
    void (*load_table)(TableInfo* info, Relation rel) = nullptr;

    // Called for every table after the functions above were called for all facets.
    void (*complete)(TableInfo* info) = nullptr;

    // What the facet's BEFORE UPDATE triggers decide about a row, for an update that does not fire
    // them. Called for a table with such a trigger. It checks itself whether the trigger fires in
    // this session.
    RowCheck check = nullptr;

    // Raises an error if the facet does not allow that use of the column. Functions of lower
    // concepts call it, which do not know this concept.
    void (*refuse_use)(Relation rel, const TableInfo* info, AttrNumber column,
                       ColumnUse use) = nullptr;
};

// Adds the facet that a trigger configures. If two triggers configure the same facet, the last one
// counts, and each use of it raises an error.
template <typename Facet>
Facet* add_facet(TableInfo* info, int number, const Trigger* trigger) {
    auto* facet = static_cast<Facet*>(palloc0(sizeof(Facet)));
    static_cast<OwnTrigger&>(*facet) = own_trigger(info->relid, trigger);
    if (const auto* other = facet_of<const Facet>(info, number))
        facet->twin = other->trigger;
    info->facets[number] = facet;
    return facet;
}

// Numbers the facets of all registered concepts. Called once, when the library is loaded.
void number_facets();

// The facet that the trigger configures. Null if the trigger does not belong to the extension.
const TableFacet* facet_of_trigger(const Trigger* trigger);

// Calls refuse_use of all facets.
void require_use(Relation rel, const TableInfo* info, AttrNumber column, ColumnUse use);

// Fills in the facets. The triggers are a copy of the relation's triggers.
void load_parts(TableInfo* info, Relation rel, const TriggerDesc* triggers);

} // namespace interlock::inline table

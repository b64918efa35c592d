// What a concept has to do with tables: what it keeps of each, the trigger function that says so,
// and its check of each change of a row.
//
// The floors below the concepts name none of them: they load, keep and run what is listed in
// Concept::parts (server/concept.h).
#pragma once

#include "table/info.h"
#include "table/trigger.h"

namespace interlock::inline table {

// What a verb is about to make of a column; see TablePart::refuse_use.
enum class ColumnUse : uint8 {
    kState,    // declared transitions move it
    kCompared, // its writers must have compared the version of the row
    kMerged,   // what several writers make of it at once is combined
    kOwned,    // who may write it depends on the writer
};

struct TablePart {
    // Set when the library is loaded: the part's place in TableInfo::parts. The concept reads
    // it there by part_of(), and fills it in by one of the functions that follow, or at its first
    // use with memory of TableInfo::memory.
    int* number;

    // The name of the extension's function whose triggers on a table configure the part.
    const char* trigger_function = nullptr;

    // Called for each such trigger, in the order of their names. Raises nothing: anybody can create
    // a trigger with any arguments on a table of his.
    void (*load_trigger)(TableInfo* info, const Trigger* trigger) = nullptr;

    // What such a trigger configures, as JSON; null for what users do not configure.
    const Mechanism* mechanism = nullptr;

    // Called for every table.
    void (*load_table)(TableInfo* info, Relation rel) = nullptr;

    // Called for every table once that is done for all parts.
    void (*complete)(TableInfo* info) = nullptr;

    // What its BEFORE UPDATE triggers decide on a row, for an update that asks without firing them.
    // Called for a table that has such a trigger; asks itself whether that fires in this session.
    RowCheck check = nullptr;

    // Raises an error when the part leaves no room for that use of the column: for the verbs of
    // concepts below, which do not know this one.
    void (*refuse_use)(Relation rel, const TableInfo* info, AttrNumber column,
                       ColumnUse use) = nullptr;
};

// Adds the part that a trigger configures. Of two for the same the last one counts, and each use of
// it raises.
template <typename Part>
Part* add_part(TableInfo* info, int number, const Trigger* trigger) {
    auto* part = static_cast<Part*>(palloc0(sizeof(Part)));
    static_cast<OwnTrigger&>(*part) = own_trigger(info->relid, trigger);
    if (const auto* other = part_of<const Part>(info, number))
        part->twin = other->trigger;
    info->parts[number] = part;
    return part;
}

// Numbers the parts of all registered concepts. Once, when the library is loaded.
void number_parts();

// The part that the trigger configures; null for a trigger of others.
const TablePart* part_of_trigger(const Trigger* trigger);

// Asks refuse_use of all parts.
void require_use(Relation rel, const TableInfo* info, AttrNumber column, ColumnUse use);

// Fills in the parts. The triggers are a copy of the relation's.
void load_parts(TableInfo* info, Relation rel, const TriggerDesc* triggers);

} // namespace interlock::inline table

// The settings of tables, as the concepts read them from the triggers in the catalog. No table is
// opened or locked.
#pragma once

#include "table/info.h"
#include "table/mechanism.h"

namespace interlock {

// Those of all concepts, in the order in which these are registered.
struct Mechanisms {
    const Mechanism* all[kMostParts];
    Oid functions[kMostParts]; // of their triggers
    int count;

    const Mechanism* const* begin() const { return all; }
    const Mechanism* const* end() const { return all + count; }

    // -1 for a trigger of others.
    int find(Oid function) const;
};
Mechanisms all_mechanisms();

// What a table has of each mechanism, by its place in `all`.
struct TableSettings {
    Jsonb* settings[kMostParts];    // null: nothing
    const char* forged[kMostParts]; // the name of a trigger that no function of ours made, or null
};
TableSettings read_settings(const Mechanisms& mechanisms, Oid relid);

// Tables that have some, a list of Oid.
List* configured_tables(const Mechanisms& mechanisms);

} // namespace interlock

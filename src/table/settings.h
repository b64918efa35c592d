// The settings of tables, as the concepts read them from the triggers in the catalog. It opens and
// locks no table.
#pragma once

#include "table/info.h"
#include "table/mechanism.h"

namespace interlock::inline table {

// The mechanisms of all concepts, in the order in which the concepts are registered.
struct Mechanisms {
    const Mechanism* all[kMostParts];
    Oid functions[kMostParts]; // of their triggers
    int count;

    const Mechanism* const* begin() const { return all; }
    const Mechanism* const* end() const { return all + count; }

    // The place of the mechanism with that trigger function. -1 for other trigger functions.
    int find(Oid function) const;
};
Mechanisms all_mechanisms();

// What a table has of each mechanism, by the place in Mechanisms::all.
struct TableSettings {
    Jsonb* settings[kMostParts];    // null: no settings, or they are too long
    const char* forged[kMostParts]; // the name of a trigger that no function of ours made, or null
    bool is_too_long[kMostParts];
};
TableSettings read_settings(const Mechanisms& mechanisms, Oid relid);

// Raises 54000 if the settings are too long.
void require_settings(const TableSettings& settings, Oid relid);

constexpr size_t kMostSettingBytes = 16 * 1024 * 1024; // of one mechanism of a table

// Tables that have some, a list of Oid.
List* configured_tables(const Mechanisms& mechanisms);

} // namespace interlock::inline table

// The settings of tables, as the concepts read them from the triggers in the catalog. No table is
// opened or locked.
#pragma once

#include "table/info.h"
#include "table/mechanism.h"

namespace interlock::inline table {

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
    Jsonb* settings[kMostParts];    // null: nothing, or too much
    const char* forged[kMostParts]; // the name of a trigger that no function of ours made, or null
    bool is_too_long[kMostParts];
};
TableSettings read_settings(const Mechanisms& mechanisms, Oid relid);

// 54000 where they are too long.
void require_settings(const TableSettings& settings, Oid relid);

constexpr size_t kMostSettingBytes = 16 * 1024 * 1024; // of one mechanism of a table

// Tables that have some, a list of Oid.
List* configured_tables(const Mechanisms& mechanisms);

} // namespace interlock::inline table

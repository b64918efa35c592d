// Tables of the extension, read and written without a statement.
#pragma once

#include "execution/eligible.h"
#include "table/made_column.h"
#include "table/own_table.h"

namespace interlock {

// A table as it was made: its first columns, and how many of these are its key (0: no matter).
struct OwnTable {
    const char* name;
    const MadeColumn* columns;
    int count;
    int key_count;
};

// Whether its owner has left those columns and the key as they were made; others may follow. What
// the facts are of has only one name, so that the answer stays with them.
bool is_as_made(const OwnTable& table, const RelationFacts* facts);

// The table that has the name once it is locked; null: others drop it or put another in its place.
Relation try_open(const OwnTable& table, LOCKMODE mode);

// Runs body(rel, facts), which tells what became of it, where this transaction may act directly and
// the table is as it was made. Its lock stays.
template <typename Body>
DirectOutcome with_own_table(const OwnTable& table, LOCKMODE mode, Body&& body) {
    if (!transaction_is_eligible())
        return DirectOutcome::kDeclined;
    Relation rel = try_open(table, mode);
    if (rel == nullptr)
        return DirectOutcome::kDeclined;
    const RelationFacts* facts = facts_of(rel);
    DirectOutcome outcome = is_as_made(table, facts) ? body(rel, facts) : DirectOutcome::kDeclined;
    close_table(rel);
    return outcome;
}

} // namespace interlock

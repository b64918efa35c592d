// Tables of the extension, as they were made.
#pragma once

#include "table/made_column.h"
#include "table/own_table.h"
#include "table/relation.h"

namespace interlock {

// A table as it was made: its first columns, and how many of these are its key (0: no matter).
struct OwnTable {
    const char* name;
    const MadeColumn* columns;
    int count;
    int key_count;
};

// Whether its owner has left those columns and the key as they were made; others may follow. What
// the metadata is of has only one name, so that the answer stays with them.
bool is_unmodified(const OwnTable& table, const TableInfo* info);

// What a statement of ours says of the table: its metadata, or where its owner has altered it the
// columns and the key as they were made, for the server to raise what is to be raised. Those are
// good for nothing but the statement's text (execution/eligible.h).
const TableInfo* unmodified_info(const OwnTable& table, const TableInfo* info);

// The table that has the name once it is locked; null: others drop it or put another in its place.
Relation try_open(const OwnTable& table, LOCKMODE mode);

} // namespace interlock

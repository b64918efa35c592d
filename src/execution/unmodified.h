// Whether a table of the extension is unmodified, that is, as CREATE EXTENSION created it.
#pragma once

#include "table/made_column.h"
#include "table/own_table.h"
#include "table/relation.h"

namespace interlock::inline execution {

// The original definition of a table: its first columns, and how many of these are its key (0: not
// checked).
struct OwnTable {
    const char* name;
    const MadeColumn* columns;
    int count;
    int key_count;
};

// Whether these columns and the key are unmodified. Other columns may follow. The metadata caches
// the answer.
bool is_unmodified(const OwnTable& table, const TableInfo* info);

// The metadata for the text of a statement on the table. If its owner has altered the table, it has
// the original columns and key, so that the server raises the right error. It is then valid only
// for the text of a statement (execution/eligible.h).
const TableInfo* unmodified_info(const OwnTable& table, const TableInfo* info);

// The table that has the name after locking it. Null if others have dropped or replaced it.
Relation try_open(const OwnTable& table, LOCKMODE mode);

} // namespace interlock::inline execution

// One row of a table as it is stored, read without a statement where that is eligible.
#pragma once

#include "execution/row_lock.h"
#include "table/row.h"
#include "table/row_json.h"

namespace interlock::inline execution {

// The columns of a row as a fresh snapshot sees it, or as its newest version once locked. Lives in
// the caller's context.
struct StoredRow {
    bool found;
    bool is_busy; // another transaction writes it or keeps others from writing it; false when the
                  // own one may have a lock on it too, and when it was read by a statement
    const Bitmapset* attnums;
    TupleDesc columns;
    HeapTuple tuple;
    ItemPointerData place; // not valid when it was read by a statement
};

// Reads one row with the caller's privileges and row security.
StoredRow read_row(Relation rel, const TableInfo* info, const Key& key, const Bitmapset* columns,
                   RowLock lock = {});

// --- The table's key of a row that another key names ---------------------------------------------

// The columns, and those of the table's key where `key` is another one and the caller may SELECT
// them: what to read of a row for table_key().
const Bitmapset* with_table_key(Relation rel, const TableInfo* info, const Key& key,
                                const Bitmapset* columns);

// What errors and audits call the row by: the table's key if it was read, else `key`.
const Key* table_key(const TableInfo* info, const Key& key, const StoredRow& row);

// As above, of the row as it is now: for one that the transaction has written or locked.
const Key* read_table_key(Relation rel, const TableInfo* info, const Key& key);

// A column of a stored row; it must be one of those read.
Datum stored_value(const StoredRow& row, AttrNumber attnum, bool* is_null);
Datum stored_row_to_jsonb(const StoredRow& row, JsonFor what = JsonFor::kReader);

// The columns read as a row of the table, with nulls for the others.
HeapTuple stored_row_as_tuple(const StoredRow& row, const TableInfo* info);

} // namespace interlock::inline execution

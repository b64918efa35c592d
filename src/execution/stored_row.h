// One row of a table as it is stored, read without a statement if that is eligible.
#pragma once

#include "execution/row_lock.h"
#include "table/row.h"
#include "table/row_json.h"

namespace interlock::inline execution {

// The columns of a row as a fresh snapshot sees it, or of its newest version after locking it.
// Lives in the caller's context.
struct StoredRow {
    bool found;
    // Another transaction writes the row or keeps others from writing it. Always false in two
    // cases: this transaction may hold a lock on the row, or the row was read by a statement.
    bool is_busy;
    const Bitmapset* attnums;
    TupleDesc columns;
    HeapTuple tuple;
    ItemPointerData place; // not valid if it was read by a statement
};

// Reads one row with the caller's privileges and row security.
StoredRow read_row(Relation rel, const TableInfo* info, const Key& key, const Bitmapset* columns,
                   RowLock lock = {});

// Locks the row FOR NO KEY UPDATE, and reads it as it is then. A row that was deleted during the
// wait may have been inserted again. Not found: there is no such row. Raises the error of
// raise_suppressed() if the row is there and cannot be locked: a policy for UPDATE hides it.
StoredRow read_locked_row(Relation rel, const TableInfo* info, const Key& key,
                          const Bitmapset* columns);

// --- The table's key of a row that another key names ---------------------------------------------

// The columns, and the columns of the table's key if `key` is another key and the caller may SELECT
// them. table_key() needs these columns of the row.
const Bitmapset* with_table_key(Relation rel, const TableInfo* info, const Key& key,
                                const Bitmapset* columns);

// The key by which errors and audits name the row: the table's key if it was read, otherwise `key`.
const Key* table_key(const TableInfo* info, const Key& key, const StoredRow& row);

// As above, from the current row. For a row that the transaction has written or locked.
const Key* read_table_key(Relation rel, const TableInfo* info, const Key& key);

// The value of a column of a stored row. The column must have been read.
Datum stored_value(const StoredRow& row, AttrNumber attnum, bool* is_null);
Datum stored_row_to_jsonb(const StoredRow& row, JsonFor what = JsonFor::kReader);

// The columns that were read, as a row of the table. Other columns are null.
HeapTuple stored_row_as_tuple(const StoredRow& row, const TableInfo* info);

} // namespace interlock::inline execution

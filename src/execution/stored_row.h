// One row of a table as it is stored, read without a statement where that is eligible.
#pragma once

#include "execution/row_lock.h"
#include "table/row.h"

namespace interlock {

// The columns of a row as a fresh snapshot sees it, or as its newest version once locked. Lives in
// the caller's context.
struct StoredRow {
    bool found;
    const Bitmapset* attnums;
    TupleDesc columns;
    HeapTuple tuple;
};

// Reads one row with the caller's privileges and row security.
StoredRow read_row(Relation rel, const TableInfo* info, const Key& key, const Bitmapset* columns,
                   RowLock lock = {});

// A column of a stored row; it must be one of those read.
Datum stored_value(const StoredRow& row, AttrNumber attnum, bool* is_null);
Datum stored_row_to_jsonb(const StoredRow& row);

// The columns read as a row of the table, with nulls for the others.
HeapTuple stored_row_as_tuple(const StoredRow& row, const TableInfo* info);

} // namespace interlock

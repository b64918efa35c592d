// Rows as jsonb and back: the changes a caller asks for, and the stored row a conflict shows.
#pragma once

#include "table/key.h"
#include "table/populate.h"
#include "table/relation.h"
#include "table/row_values.h"

namespace interlock::inline table {

// New values for some columns, in column order.
struct Changes {
    int count;
    Bitmapset* columns;
    AttrNumber* attnums;
    Datum* values;
    bool* nulls;
};

// Reads {column: value}. Raises 22023 when it is no object, 42703 for an unknown column, 428C9 for
// a generated one, 22023 for a column of the table's key or of the one that names the row, or for
// one in `managed` (which the verb sets itself), and what the conversion of a value raises. A
// member that repeats the value by which the key names the row is no change: a client may send the
// row as it has it. A column of `managed` must not name the row, either (22023).
Changes parse_changes(Relation rel, const TableInfo* info, const Key& key, Jsonb* json,
                      const Bitmapset* managed);

// Argument n, "changes"; 22023 when it is no object.
Jsonb* changes_json(const Arguments& arguments, int n);

// Raises P0002 with the key.
[[noreturn]] void raise_no_such_row(Relation rel, const TableInfo* info, const Key& key);

// The write found no row although the row meets its condition: a row security policy (42501), or a
// trigger or rule (09000), keeps the caller from writing it.
[[noreturn]] void raise_suppressed(Relation rel);

// The columns' names as text[].
Datum column_names(TupleDesc columns, const Bitmapset* which);

// The columns the current user may SELECT.
Bitmapset* readable_columns(Relation rel);

// What an error may show of a stored row: the columns that the current user could SELECT of it now,
// from the table or from one that it is a partition of.
Bitmapset* readable_columns(Relation rel, HeapTuple row);

// The row's key as JSON for an error; null when the error may not show it.
const char* readable_key(const TableInfo* info, const Bitmapset* readable, HeapTuple row);

} // namespace interlock::inline table

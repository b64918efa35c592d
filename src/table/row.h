// Rows and jsonb: the changes that a caller wants, and the row that a conflict shows.
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

// Whether the row has these values already, compared by their bytes. stored(column) is the value in
// the row.
template <typename Stored>
bool has_values(TupleDesc columns, const Changes& changes, Stored&& stored) {
    for (int i = 0; i < changes.count; i++)
        if (!same_value(TupleDescAttr(columns, changes.attnums[i] - 1), stored(changes.attnums[i]),
                        {changes.values[i], changes.nulls[i]}))
            return false;
    return true;
}

// Reads {column: value}. Raises 22023 if it is no object. Raises 42703 for an unknown column, and
// 428C9 for a generated column. Raises 22023 for a column of the table's key, for a column of the
// key that names the row, and for a column in `managed`, which the function sets itself. Also
// raises 22023 if a column in `managed` names the row. The conversion of a value can raise other
// errors.
//
// A member that repeats the key's value is no change, so a client may send the whole row.
Changes parse_changes(Relation rel, const TableInfo* info, const Key& key, Jsonb* json,
                      const Bitmapset* managed);

// Argument n, "changes". Raises 22023 if it is no object.
Jsonb* changes_json(const Arguments& arguments, int n);

// Raises P0002 with the key.
[[noreturn]] void raise_no_such_row(Relation rel, const TableInfo* info, const Key& key);

// For a write that found no row although the row meets its condition. Raises 42501 if a row
// security policy prevented the write, and 09000 if a trigger or rule prevented it.
[[noreturn]] void raise_suppressed(Relation rel);

// The columns' names as text[].
Datum column_names(TupleDesc columns, const Bitmapset* which);

// The columns that the current user may SELECT.
Bitmapset* readable_columns(Relation rel);

// The columns of a stored row that an error may show: those that the current user could SELECT of
// it now, from the table or from a table that it is a partition of.
Bitmapset* readable_columns(Relation rel, HeapTuple row);

// The row's key as JSON for an error. Null if the error may not show it.
const char* readable_key(const TableInfo* info, const Bitmapset* readable, HeapTuple row);

} // namespace interlock::inline table

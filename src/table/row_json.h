// Rows as jsonb objects, exactly as to_jsonb makes them.
//
// The commonest types are converted without the catalog look-ups that to_jsonb makes for each
// value; all others by to_jsonb.
#pragma once

#include "table/row_values.h"

namespace interlock {

// Columns in the order in which jsonb keeps its members.
struct JsonMembers {
    int count;
    AttrNumber* columns;
};

// Those of the columns, in the current memory context.
JsonMembers json_members(TupleDesc columns, const Bitmapset* which);

Datum members_to_jsonb(TupleDesc columns, const JsonMembers& members, const RowValues& row);

// Those columns of the row, and all of them.
Datum columns_to_jsonb(TupleDesc columns, HeapTuple row, const Bitmapset* which);
Datum row_to_jsonb(TupleDesc columns, HeapTuple row);

// The same value of a column, so that 1.0 is 1 and key order in jsonb does not count. Values that
// the type's operator calls equal may differ all the same: in a letter's case, or 30 days and a
// month.
bool equal_values(TupleDesc columns, AttrNumber attnum, NullableDatum left, NullableDatum right);

} // namespace interlock

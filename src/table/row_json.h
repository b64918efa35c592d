// Rows as jsonb objects, which are read back by row_from_jsonb (table/populate.h): the row that
// comes back is the same, whatever the session's settings are on both sides.
//
// They are as to_jsonb makes them, but for values that do not come back from that. Those are
// strings with the text of their output function: values of types with a cast to json of their own,
// which would be called; arrays with other lower bounds than 1, or whose elements are arrays or
// nulls in JSON; -0; and json that jsonb does not take, such as "\u0000". Of json the value counts,
// without blanks, duplicates and the order of members. The null of JSON comes back as that of SQL,
// except in a column that is NOT NULL. In a field of a row type, json that jsonb does not take
// comes back as a string.
#pragma once

#include "server/stable_text.h"
#include "table/row_values.h"

namespace interlock::inline table {

// Columns in the order in which jsonb keeps its members.
struct JsonMembers {
    int count;
    AttrNumber* columns;
};

// Those of the columns, in the current memory context.
JsonMembers json_members(TupleDesc columns, const Bitmapset* which);

// Amounts of money print by the session's lc_monetary for a reader, who has the same; and in one
// way for what is stored, which is read with_stored_money().
enum class JsonFor : uint8 { kReader, kStorage };

Datum members_to_jsonb(TupleDesc columns, const JsonMembers& members, const RowValues& row,
                       JsonFor what = JsonFor::kReader);

// Those columns of the row, and all of them.
Datum columns_to_jsonb(TupleDesc columns, HeapTuple row, const Bitmapset* which,
                       JsonFor what = JsonFor::kReader);
Datum row_to_jsonb(TupleDesc columns, HeapTuple row, JsonFor what = JsonFor::kReader);

template <typename Body>
void with_stored_money(Body&& body) {
    printing_alike(Printing{.styles = false, .names = false, .money = true}, body);
}

// The rule by which every concept says whether a column has another value: the same value of a
// column, so that 1.0 is 1 and key order in jsonb does not count. Values that the type's operator
// calls equal may differ all the same: in a letter's case, or 30 days and a month. A json null is
// the same as no value.
bool equal_values(TupleDesc columns, AttrNumber attnum, NullableDatum left, NullableDatum right);

} // namespace interlock::inline table

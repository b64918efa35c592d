// Rows as jsonb objects. row_from_jsonb (table/populate.h) reads such an object back and returns
// the same row, whatever the settings of the two sessions are.
//
// Most values are as to_jsonb makes them. Values that could not be read back from that form are
// strings with the text of their output function. These are:
// - values of types with their own cast to json, which is not called;
// - arrays with a lower bound other than 1, or whose elements are arrays or nulls in JSON;
// - -0;
// - json that jsonb cannot hold, such as "\u0000".
//
// For json the value counts, and not blanks, duplicates and the order of members. The null of JSON
// is read back as the null of SQL, except in a column that is NOT NULL. In a field of a row type,
// json that jsonb cannot hold is read back as a string.
#pragma once

#include "server/stable_text.h"
#include "table/row_values.h"

namespace interlock::inline table {

// Columns in the order in which jsonb keeps its members.
struct JsonMembers {
    int count;
    AttrNumber* columns;
};

// The members for these columns, in the current memory context.
JsonMembers json_members(TupleDesc columns, const Bitmapset* which);

// For a reader, amounts of money print by the session's lc_monetary, which the reader has too. For
// storage they print in one way. Stored values are read by with_stored_money().
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

// The rule by which every concept decides whether a column has another value. 1.0 is the same as 1,
// and the order of keys in jsonb does not count. Values that the type's equality operator calls
// equal may still differ here: in the case of a letter, or 30 days and a month. A json null is the
// same as no value.
bool equal_values(TupleDesc columns, AttrNumber attnum, NullableDatum left, NullableDatum right);

} // namespace interlock::inline table

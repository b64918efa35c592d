// The key that names one row: parsing an argument, writing it as JSON, ordering.
#pragma once

#include "table/relation.h"

namespace interlock {

struct Key {
    Datum values[INDEX_MAX_KEYS];
};

// Reads a key of any type for the table's key columns. One column: the value itself, converted
// through the column's input function unless it has the type already; composite: a jsonb object, or
// its text, that names every key column and no other. Raises 22004 for null and missing parts,
// 22023 for a shape that does not fit, and what the input function raises.
Key parse_key(Relation rel, const TableInfo* info, Datum value, Oid type);

// As above, for a member of a jsonb object.
Key parse_key(Relation rel, const TableInfo* info, const JsonbValue& value);

// The text of a JSON string, number or boolean, as an input function reads it.
char* scalar_text(const JsonbValue& scalar);

// Argument n as the key of a row; null is 22004.
class Arguments;
Key key_argument(const Arguments& arguments, int n, Relation rel, const TableInfo* info);

// {"column": value, ...} as jsonb, and as text (null for a table without a key).
Datum key_to_jsonb(const TableInfo* info, const Key& key);
char* key_to_text(const TableInfo* info, const Key& key);

// The key of a stored row.
Key key_of_tuple(const TableInfo* info, HeapTuple tuple);

int compare_keys(const TableInfo* info, const Key& left, const Key& right);

} // namespace interlock

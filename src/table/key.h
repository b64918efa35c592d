// The key that names one row: parsing an argument, writing it as JSON, ordering.
#pragma once

#include "table/relation.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::inline table {

struct Key {
    const UniqueKey* by; // the key of the table, or another one (table/key_index.h)
    Datum values[INDEX_MAX_KEYS];
};

// Reads a key of any type. For the table's key, if it has one column, the value itself, converted
// through the column's input function unless it has the type already. For any key of the table a
// jsonb object, or its text, that names all its columns and no other. A text that could be a value
// of the table's key is one: it names a row by another key only as jsonb. Raises 22004 for null and
// missing parts, 22023 for a shape that does not fit, and what the input function raises.
Key parse_key(Relation rel, const TableInfo* info, Datum value, Oid type);

// As above, for a member of a jsonb object.
Key parse_key(Relation rel, const TableInfo* info, const JsonbValue& value);

// The text of a JSON string, number or boolean, as an input function reads it.
char* scalar_text(const JsonbValue& scalar);

// Argument n as the key of a row; null is 22004.
Key key_argument(const Arguments& arguments, int n, Relation rel, const TableInfo* info);

// Whether the row is named by the key of the table, by which others know it too.
inline bool is_named_by_table_key(const TableInfo* info, const Key& key) {
    return key.by == &info->key;
}

// Whether the key is a text that looks like a JSON object: perhaps one was meant.
bool is_text_of_object(const TableInfo* info, const Key& key);

// {"column": value, ...} as jsonb, and as text (null for a table without a key). The output
// function of a type may raise an error: call neither while an error is reported, not among the
// arguments of ereport() either.
Datum key_to_jsonb(const TableInfo* info, const Key& key);
char* key_to_text(const TableInfo* info, const Key& key);

// The table's key of a stored row.
Key key_of_tuple(const TableInfo* info, HeapTuple tuple);

// Orders by index where the keys name rows by different ones. Asks for interrupts: a sort of keys
// that a caller gives may take long.
int compare_keys(const Key& left, const Key& right);

} // namespace interlock::inline table

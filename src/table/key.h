// The key that names one row: reading an argument, writing the key as JSON, ordering keys.
#pragma once

#include "table/relation.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::inline table {

struct Key {
    const UniqueKey* by; // the key of the table or another unique key (table/key_index.h)
    Datum values[INDEX_MAX_KEYS];
};

// Reads a key of any type.
//
// If the table's key has one column, `value` can be the value of that column. It is converted by
// the column's input function unless it has the column's type. For any unique key of the table,
// `value` can be a jsonb object or its text that names all columns of the key and no other. A text
// that could be a value of the table's key is taken as that value. To name a row by another key use
// jsonb then.
//
// Raises 22004 for null and for missing members, 22023 if the value has another form, and the
// errors of the input function.
Key parse_key(Relation rel, const TableInfo* info, Datum value, Oid type);

// The same for a member of a jsonb object.
Key parse_key(Relation rel, const TableInfo* info, const JsonbValue& value);

// The text of a JSON string, number or boolean, as an input function reads it.
char* scalar_text(const JsonbValue& scalar);

// Argument n as the key of a row. Raises 22004 if it is null.
Key key_argument(const Arguments& arguments, int n, Relation rel, const TableInfo* info);

// Whether the key is the table's key. Other functions name the row by that key too.
inline bool is_named_by_table_key(const TableInfo* info, const Key& key) {
    return key.by == &info->key;
}

// Whether the key is a text that looks like a JSON object. The caller may have meant an object.
bool is_text_of_object(const TableInfo* info, const Key& key);

// {"column": value, ...} as jsonb, and as text (null for a table without a key). The output
// function of a type may raise an error. So do not call them while an error is being reported, nor
// among the arguments of ereport().
Datum key_to_jsonb(const TableInfo* info, const Key& key);
char* key_to_text(const TableInfo* info, const Key& key);

// The value of the table's key in a stored row.
Key key_of_tuple(const TableInfo* info, HeapTuple tuple);

// Compares two keys. If they belong to different indexes, it orders by index. It checks for
// interrupts, because sorting the keys of a caller may take long.
int compare_keys(const Key& left, const Key& right);

} // namespace interlock::inline table

// The unique indexes whose columns name one row of a table.
//
// Such an index is a valid B-tree over columns, neither expressions nor some rows alone, that are
// NOT NULL, and it is checked at once. The first of them is the key of the table: it is what a
// value that is no object stands for, what history and audits call a row by, and what DETAIL shows
// of it. That is the primary key, else the narrowest (the oldest of several).
#pragma once

#include "table/info.h"

namespace interlock::inline table {

// Fills in the metadata of the table's key.
void load_key(TableInfo* info, Relation rel);

// And of its other keys: not of two over the same columns, nor of one with a column that our
// triggers set, whose key would be another after each update. Call after load_parts().
void load_other_keys(TableInfo* info, Relation rel);

// The key whose columns are the members of the object, ready to be used; null: none.
const UniqueKey* find_key(const TableInfo* info, JsonbContainer* object);

// The same for exactly these columns.
const UniqueKey* find_key(const TableInfo* info, const Bitmapset* columns);

// ("first", "second"): the key's columns, for hints; and such lists of all keys of the table.
const char* list_of_columns(const TableInfo* info, const UniqueKey& key);
const char* list_of_keys(const TableInfo* info);

// Raises 55000 when the table has no key that names one row.
void require_key(Relation rel, const TableInfo* info);

// The names of the key's columns in their order, without the cached metadata; NIL if it has no key.
List* key_column_names(Oid relid);
List* key_column_names(Relation rel);

} // namespace interlock::inline table

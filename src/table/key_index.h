// The unique indexes whose columns name one row of a table.
//
// Such an index is a valid B-tree that is checked at once. It has plain columns that are NOT NULL,
// no expressions and no WHERE clause. One of these indexes is the key of the table: the primary
// key, otherwise the index with the fewest columns (the oldest of several). A key argument that is
// no object is a value of this key. History, audits and DETAIL name a row by it.
#pragma once

#include "table/info.h"

namespace interlock::inline table {

// Fills in the metadata of the table's key.
void load_key(TableInfo* info, Relation rel);

// Fills in the other keys. Leaves out a second key over the same columns. Leaves out a key with a
// column that the extension's triggers set, because its value would change with each update. To be
// called after load_parts().
void load_other_keys(TableInfo* info, Relation rel);

// The key whose columns are the members of the object, ready for use. Null if there is none.
const UniqueKey* find_key(const TableInfo* info, JsonbContainer* object);

// The same for exactly these columns.
const UniqueKey* find_key(const TableInfo* info, const Bitmapset* columns);

// The key's columns for hints: ("first", "second"). The second function lists all keys of the
// table.
const char* list_of_columns(const TableInfo* info, const UniqueKey& key);
const char* list_of_keys(const TableInfo* info);

// Raises 55000 if the table has no key that names one row.
void require_key(Relation rel, const TableInfo* info);

// The names of the key's columns in their order, read without the cached metadata. NIL if the table
// has no key.
List* key_column_names(Oid relid);
List* key_column_names(Relation rel);

} // namespace interlock::inline table

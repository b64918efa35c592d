// The unique index whose columns name one row of a table.
#pragma once

#include "table/info.h"

namespace interlock {

// Fills in the metadata of the key.
void load_key(TableInfo* info, Relation rel);

// Raises 55000 when the table has no key that names one row.
void require_key(Relation rel, const TableInfo* info);

// The names of the key's columns in their order, without the cached metadata; NIL if it has no key.
List* key_column_names(Oid relid);
List* key_column_names(Relation rel);

} // namespace interlock

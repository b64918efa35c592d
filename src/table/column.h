// Columns of a table: found by name, and what their values are like.
#pragma once

#include "server/server.h"

namespace interlock {

// The column's number, 42703 when there is none of that name, 42703 for system columns too.
AttrNumber column_number(Relation rel, const char* name);

// Raises 42703 for a name that no column can have: an empty one, or that of a system column.
void require_column_name(Relation rel, const char* name);

// The column's number, InvalidAttrNumber when there is none of that name.
AttrNumber find_attribute(TupleDesc columns, std::string_view name);

// Whether values of the type (below any domain) print the same whatever the session's settings are,
// or can be made to.
bool prints_alike(Oid type);

// Whether rows hold the column's value: not if it is computed on reading.
bool is_stored(Form_pg_attribute attribute);

} // namespace interlock

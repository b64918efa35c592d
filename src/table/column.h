// Columns of a table: finding them by name, and properties of their types.
#pragma once

#include "server/server.h"

namespace interlock::inline table {

// The column's number, 42703 when there is none of that name, 42703 for system columns too.
AttrNumber column_number(Relation rel, const char* name);

// The hint of an error about a name that is no column's, for ereport().
int hint_column_name(std::string_view name);

// The same, with the name of the column that was probably meant if one is near enough.
int hint_nearest_column(TupleDesc columns, std::string_view name);

// For the name of a column to use or to add. Raises 42703 for one that no column can have: an empty
// one, or that of a system column; and for one in quotes, unless there is such a column.
void require_column_name(Relation rel, const char* name);

// The column's number, InvalidAttrNumber when there is none of that name.
AttrNumber find_attribute(TupleDesc columns, std::string_view name);

// Whether values of the type (below any domain) print the same under all settings of the session,
// or can be made to.
bool prints_alike(Oid type);

// Whether rows store the column's value: false for a virtual generated column.
bool is_stored(Form_pg_attribute attribute);

// The columns in the expression, as it is stored; all of them for a whole row.
Bitmapset* columns_in(TupleDesc columns, const char* expression);

// The columns of which generated ones among these are made. Their values are computed after the
// BEFORE triggers: there the others tell whether they will change.
Bitmapset* sources_of(TupleDesc columns, const Bitmapset* generated);

} // namespace interlock::inline table

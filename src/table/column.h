// Columns of a table: finding a column by its name, and properties of column types.
#pragma once

#include "server/server.h"

namespace interlock::inline table {

// The number of the column. Raises 42703 if there is no such column, also for a system column.
AttrNumber column_number(Relation rel, const char* name);

// The hint of an error about a name that is not the name of a column, for ereport().
int hint_column_name(std::string_view name);

// The same. If a column has a similar name, the hint names it.
int hint_nearest_column(TupleDesc columns, std::string_view name);

// Checks the name of a column that will be used or added. Raises 42703 if no column can have the
// name: it is empty or the name of a system column. Also raises it for a name in quotes, unless
// there is such a column.
void require_column_name(Relation rel, const char* name);

// The number of the column, or InvalidAttrNumber if there is no such column.
AttrNumber find_attribute(TupleDesc columns, std::string_view name);

// The names of columns as a JSON array, for DETAIL.
char* column_names_json(TupleDesc columns, const Bitmapset* numbers);

// Whether values of the type print the same under all settings of the session, or can be made to do
// so. The type is not a domain.
bool prints_alike(Oid type);

// Whether rows store the column's value: false for a virtual generated column.
bool is_stored(Form_pg_attribute attribute);

// The columns in the stored expression. A reference to the whole row counts as all columns.
Bitmapset* columns_in(TupleDesc columns, const char* expression);

// The columns from which the generated columns among `generated` are computed. Generated values are
// computed after the BEFORE triggers, so a trigger uses the source columns to tell whether a
// generated column will change.
Bitmapset* sources_of(TupleDesc columns, const Bitmapset* generated);

} // namespace interlock::inline table

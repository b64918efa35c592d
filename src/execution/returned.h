// Adds the table and the returned columns to the text of a statement, and copies the values that
// the statement returned.
#pragma once

#include "table/plan.h"
#include "table/relation.h"

namespace interlock::inline execution {

// A copy of the value in the current context.
NullableDatum copy_of(Form_pg_attribute column, NullableDatum value);

// The table of a statement. Tables that inherit from it are left out (ONLY), except for a table of
// the extension.
const char* target_of(Relation rel, const TableInfo* info);

// Adds `before` and t.column, ... to the statement. Adds nothing if there are no columns.
void add_returned(Statement* statement, const char* before, const TableInfo* info,
                  const AttrNumber* columns, int count);

// Copies of the columns of a row, in the current context.
void copy_columns(TupleTableSlot* row, const AttrNumber* columns, int count,
                  NullableDatum* returned);

// Copies the columns of the first row that the statement has returned. Call it inside with_spi.
// Raises what require_result() raises if the columns have other types than in the metadata.
void copy_result(const TableInfo* info, const AttrNumber* columns, int count,
                 NullableDatum* returned);

} // namespace interlock::inline execution

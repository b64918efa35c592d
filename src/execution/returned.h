// The table of a read or a write, and the columns of a row that it returns.
#pragma once

#include "table/plan.h"
#include "table/relation.h"

namespace interlock::inline execution {

// A copy in the current context.
NullableDatum copy_of(Form_pg_attribute column, NullableDatum value);

// The table of a statement: without the tables that inherit from it (ONLY); of a table of the
// extension, with them.
const char* target_of(Relation rel, const TableInfo* info);

// t.column, ... behind `before`; nothing when there are none.
void add_returned(Statement* statement, const char* before, const TableInfo* info,
                  const AttrNumber* columns, int count);

// Copies of the columns of a row, in the current context.
void copy_columns(TupleTableSlot* row, const AttrNumber* columns, int count,
                  NullableDatum* returned);

// The same of the first row that the statement has returned. Call inside with_spi. Raises what
// require_result() does where the columns are of other types than in the metadata.
void copy_result(const TableInfo* info, const AttrNumber* columns, int count,
                 NullableDatum* returned);

} // namespace interlock::inline execution

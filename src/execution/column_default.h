// Defaults of the columns that an INSERT without a statement does not name.
#pragma once

#include "table/relation.h"

namespace interlock::inline execution {

// Whether each of them gets null, a constant, the next number of its identity, or what a function
// of the server returns for constants. Domains and other expressions need the planner.
bool has_plain_defaults(Relation rel, const TableInfo* info, const Bitmapset* named);

// Puts them into the row, in the order of the columns. Call it only where the function above
// returned true. Raises 42501 when the caller may not call the function.
void fill_defaults(const TableInfo* info, const Bitmapset* named, TupleTableSlot* row);

// Calls a function of the server with constants, as the executor does.
NullableDatum call_with_constants(const FuncExpr* call);

} // namespace interlock::inline execution

// Defaults of the columns that are not named by an INSERT without a statement.
#pragma once

#include "table/relation.h"

namespace interlock::inline execution {

// Whether the default of each such column is null, a constant, the next number of its identity, or
// a server function of constants. Domains and other expressions need the planner.
bool has_plain_defaults(Relation rel, const TableInfo* info, const Bitmapset* named);

// Puts the defaults into the row, in the order of the columns. Call it only if has_plain_defaults()
// returned true. Raises 42501 if the caller may not call the function.
void fill_defaults(const TableInfo* info, const Bitmapset* named, TupleTableSlot* row);

// Calls a function of the server with constants, as the executor does.
NullableDatum call_with_constants(const FuncExpr* call);

} // namespace interlock::inline execution

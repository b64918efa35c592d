// Argument "match" of a function: {"column": value, ...}. The columns of a row must have these
// values. A JSON null means IS NULL.
#pragma once

#include "table/plan.h"
#include "table/row_values.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::inline table {

struct Match {
    Bitmapset* equal; // columns that are compared with a value
    Bitmapset* null;  // columns that must be null
    HeapTuple values; // a row of the table with the values
};

// Raises 22004 for null, and 22023 if the argument is no object. Raises 42703 for an unknown
// column, with the nearest name as the hint, and 42883 for a column whose type has no equality. The
// conversion of a value can raise other errors.
Match match_argument(const Arguments& arguments, int n, Relation rel, const TableInfo* info);

inline bool matches_all(const Match& match) {
    return match.equal == nullptr && match.null == nullptr;
}

// The columns of both kinds.
inline Bitmapset* columns_of(const Match& match) { return bms_union(match.equal, match.null); }

// The columns of a row that do not match, compared as a statement would compare them. Raises 42501
// if the current user may not execute the comparison function.
Bitmapset* differences(const TableInfo* info, const Match& match, const RowValues& row);

// Adds " AND t.column = $n ..." to the statement, and the values of its parameters.
void add_match(Statement* statement, const TableInfo* info, const Match& match);
void add_match_values(Parameters* parameters, const TableInfo* info, const Match& match);

// The columns by which the plans of two matches differ, for PlanShape::columns. Raises 0A000 for
// nulls in a table of more than 800 columns, because the set must have room for each column twice.
const Bitmapset* plan_columns(Relation rel, const TableInfo* info, const Match& match);

} // namespace interlock::inline table

// The argument "match" of a verb: {"column": value, ...}, the values that columns of a row must
// have. A JSON null means IS NULL.
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

// Raises 22004 for null, 22023 when it is no object, 42703 for an unknown column, with the nearest
// name as the hint, 42883 for one whose type has no equality, and what the conversion of a value
// raises.
Match match_argument(const Arguments& arguments, int n, Relation rel, const TableInfo* info);

inline bool matches_all(const Match& match) {
    return match.equal == nullptr && match.null == nullptr;
}

// Both kinds.
inline Bitmapset* columns_of(const Match& match) { return bms_union(match.equal, match.null); }

// The columns that do not match in a row that has been read, compared as a statement would. Raises
// 42501 when the current user may not execute what compares them.
Bitmapset* differences(const TableInfo* info, const Match& match, const RowValues& row);

// " AND t.column = $n ..." and the values of the parameters.
void add_match(Statement* statement, const TableInfo* info, const Match& match);
void add_match_values(Parameters* parameters, const TableInfo* info, const Match& match);

// What distinguishes the plans of two matches, for PlanShape::columns. Raises 0A000 for nulls in a
// table of more than 800 columns: its columns do not fit in twice.
const Bitmapset* plan_columns(Relation rel, const TableInfo* info, const Match& match);

} // namespace interlock::inline table

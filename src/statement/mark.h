// What a statement compares, written into its plan.
//
// The library finds it out when the statement is planned. It is needed while the statement runs,
// perhaps hours later in another portal. So it is stored in the plan, in the list of objects whose
// change makes the plan invalid (PlannedStmt::invalItems). It is stored as items of a cache that
// the server does not have, so no change matches them. The server copies these items with the plan.
// It leaves them out for parallel workers, which write nothing. If a table gets its first row
// trigger or a child, its plans become invalid.
#pragma once

#include "statement/compared.h"

namespace interlock::inline statement {

// Marks the plan of a statement. Planning changes the query, so describe_targets() is called
// before.
List* describe_targets(Query* statement, bool is_own);
void mark_plan(PlannedStmt* plan, List* description);

struct MarkedColumn {
    bool is_marked; // the plan describes the table
    bool is_own;    // a statement of this library
    bool at_all;    // Compared, of the column or of what stands for the whole row
    bool equal;     // Compared, of the column
    bool by_cursor; // WHERE CURRENT OF
};

// Whether the plan belongs to this library.
bool is_own_plan(const PlannedStmt* plan);

// What the plan's statement compares when it does `action` (kUpdates, kDeletes) to rows of the
// target. The target is a table that the statement names, and `column` is a column of it.
MarkedColumn marked_column(const PlannedStmt* plan, Oid target, int action, AttrNumber column);

} // namespace interlock::inline statement

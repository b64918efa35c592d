// What a statement compares, written into its plan.
//
// It is found when the statement is planned and asked for while it runs, perhaps hours later by
// another portal. So it travels in the plan, among the objects whose change makes the plan invalid
// (PlannedStmt::invalItems): as items of a cache that the server does not have, so that no change
// fits them. The server copies them with the plan and leaves them out for parallel workers, which
// write nothing. A table that gets its first row trigger, or a child, makes its plans invalid.
#pragma once

#include "statement/compared.h"

namespace interlock::inline statement {

// Marks the plan of a statement. Its query is scribbled on by planning, so the targets are
// described before.
List* describe_targets(Query* statement, bool is_own);
void mark_plan(PlannedStmt* plan, List* description);

struct MarkedColumn {
    bool is_marked; // the plan describes the table
    bool is_own;    // a statement of this library's own
    bool at_all;    // Compared, of the column or of what stands for the whole row
    bool equal;     // Compared, of the column
    bool by_cursor; // WHERE CURRENT OF
};

// Whether the plan is one of this library's own.
bool is_own_plan(const PlannedStmt* plan);

// What the plan's statement compares where it does this (kUpdates, kDeletes) to the rows of the
// target: a table as the statement names it, and a column of that.
MarkedColumn marked_column(const PlannedStmt* plan, Oid target, int action, AttrNumber column);

} // namespace interlock::inline statement

// The tables that a statement writes, in the statement after the parser and the rewriter. They are
// found before planning, because a plan spreads its conditions over index scans and joins.
#pragma once

#include "server/server.h"

namespace interlock::inline statement {

// What the statement does to rows of a target, as bits.
constexpr int kUpdates = 1;
constexpr int kDeletes = 2;

// A table that an UPDATE, DELETE, MERGE or ON CONFLICT DO UPDATE writes, in the statement itself or
// in its WITH.
struct Target {
    Query* statement; // the whole one
    Query* query;     // the part of the statement that writes the table
    RangeTblEntry* entry;
    int reads_elsewhere = -1; // not known yet; see below
};

// Whether the statement reads the target, or a table that shares rows with it by inheritance, in
// any place other than as its target.
bool reads_elsewhere(Target* target);

// Calls visit(target) for each target that has row triggers, or has partitions or children, which
// can have row triggers.
template <typename Visit>
void each_target(Query* statement, Visit&& visit);

// The same for one part of the statement. Returns false if that part writes no such table.
bool target_of(Query* statement, Query* query, Target* target);

template <typename Visit>
void each_target(Query* statement, Visit&& visit) {
    Target target;
    if (target_of(statement, statement, &target))
        visit(&target);
    if (!statement->hasModifyingCTE)
        return;
    ListCell* cell;
    foreach (cell, statement->cteList) {
        auto* query = castNode(Query, lfirst_node(CommonTableExpr, cell)->ctequery);
        if (target_of(statement, query, &target))
            visit(&target);
    }
}

} // namespace interlock::inline statement

#include "statement/cursor.h"

namespace interlock::inline statement {

static CurrentOfExpr* cursor_among(const List* conditions) {
    const ListCell* cell;
    foreach (cell, conditions)
        if (IsA(lfirst(cell), CurrentOfExpr))
            return static_cast<CurrentOfExpr*>(lfirst(cell));
    return nullptr;
}

// The executor finds such a row by its place. All scans of a partitioned table name one cursor.
static bool find_cursor(PlanState* state, void* found) {
    if (IsA(state, TidScanState)) {
        auto* scan = reinterpret_cast<TidScan*>(state->plan);
        auto** cursor = static_cast<CurrentOfExpr**>(found);
        *cursor = cursor_among(scan->tidquals);
        if (*cursor != nullptr)
            return true;
    }
    return walk_plan_state(state, find_cursor, found);
}

bool is_as_fetched(QueryDesc* query, Oid relid, const ItemPointerData& row) {
    CurrentOfExpr* cursor = nullptr;
    ItemPointerData fetched;
    return find_cursor(query->planstate, &cursor) &&
           execCurrentOf(cursor, GetPerTupleExprContext(query->estate), relid, &fetched) &&
           ItemPointerEquals(&fetched, const_cast<ItemPointerData*>(&row));
}

} // namespace interlock::inline statement

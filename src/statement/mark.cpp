#include "statement/mark.h"

namespace interlock::inline statement {

// --- Targets and what they compare ---------------------------------------------------------------

// MERGE has a condition for each action.
static Compared compared_by_actions(Target* target, CmdType command, bool* found) {
    Compared joined = compared_by(target, merge_condition(target->query));
    Compared compared = {};
    ListCell* cell;
    foreach (cell, target->query->mergeActionList) {
        auto* action = lfirst_node(MergeAction, cell);
        if (action->commandType != command)
            continue;
        Compared here = compared_by(target, action->qual);
        if (is_for_matched(action))
            here = either_compares(here, joined);
        compared = *found ? both_compare(compared, here) : here;
        *found = true;
    }
    return compared;
}

// --- Items ---------------------------------------------------------------------------------------

namespace {

// The caches of the server have numbers from zero up.
enum Item : int {
    kOfLibrary = -494'000,
    kUpdateOf, // an OID; the columns that follow belong to it
    kDeleteOf,
    kColumnAtAll,
    kColumnEqual,
};

} // namespace

static List* add_item(List* items, Item kind, uint32 value) {
    auto* item = makeNode(PlanInvalItem);
    item->cacheId = kind;
    item->hashValue = value;
    return lappend(items, item);
}

static List* add_columns(List* items, Item kind, const Bitmapset* columns) {
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;)
        items = add_item(items, kind, static_cast<uint32>(column));
    return items;
}

static List* add_target(List* items, Item kind, const Target* target, const Compared& compared) {
    items = add_item(items, kind, target->entry->relid);
    items = add_columns(items, kColumnAtAll, compared.at_all);
    return add_columns(items, kColumnEqual, compared.equal);
}

static List* add_merge(List* items, Target* target) {
    bool updates = false;
    bool deletes = false;
    Compared update = compared_by_actions(target, CMD_UPDATE, &updates);
    Compared remove = compared_by_actions(target, CMD_DELETE, &deletes);
    items = add_target(items, kUpdateOf, target, update);
    return add_target(items, kDeleteOf, target, remove);
}

static List* add_conditions(List* items, Target* target) {
    Query* query = target->query;
    switch (query->commandType) {
    case CMD_MERGE:
        return add_merge(items, target);
    case CMD_INSERT:
        return add_target(items, kUpdateOf, target,
                          compared_by(target, query->onConflict->onConflictWhere));
    default:
        return add_target(items, query->commandType == CMD_UPDATE ? kUpdateOf : kDeleteOf, target,
                          compared_by(target, query->jointree->quals));
    }
}

namespace {

struct TargetMark {
    bool is_found;
    bool at_all;
    bool equal;
    bool by_cursor;
};

} // namespace

// Several parts of one statement may write the table: what all of them compare counts.
static void join_marks(MarkedColumn* marked, const TargetMark& mark) {
    if (!mark.is_found)
        return;
    bool first = !marked->is_marked;
    marked->is_marked = true;
    marked->at_all = mark.at_all && (first || marked->at_all);
    marked->equal = mark.equal && (first || marked->equal);
    marked->by_cursor = mark.by_cursor && (first || marked->by_cursor);
}

List* describe_targets(Query* statement, bool is_own) {
    List* items = NIL;
    if (is_own)
        return add_item(items, kOfLibrary, 0);
    each_target(statement, [&](Target* target) { items = add_conditions(items, target); });
    return items;
}

void mark_plan(PlannedStmt* plan, List* description) {
    plan->invalItems = list_concat(plan->invalItems, description);
}

bool is_own_plan(const PlannedStmt* plan) {
    const ListCell* cell;
    foreach (cell, plan->invalItems)
        if (lfirst_node(PlanInvalItem, cell)->cacheId == kOfLibrary)
            return true;
    return false;
}

MarkedColumn marked_column(const PlannedStmt* plan, Oid target, int action, AttrNumber column) {
    MarkedColumn marked = {};
    TargetMark mark = {};
    auto number = static_cast<uint32>(column - FirstLowInvalidHeapAttributeNumber);
    const ListCell* cell;
    foreach (cell, plan->invalItems) {
        const auto* item = lfirst_node(PlanInvalItem, cell);
        switch (item->cacheId) {
        case kOfLibrary:
            marked.is_own = true;
            break;
        case kUpdateOf:
        case kDeleteOf:
            join_marks(&marked, mark);
            mark = {};
            mark.is_found =
                item->hashValue == target && (item->cacheId == kUpdateOf) == (action == kUpdates);
            break;
        case kColumnAtAll:
            mark.at_all = mark.at_all || item->hashValue == number || item->hashValue == kWholeRow;
            mark.by_cursor = mark.by_cursor || item->hashValue == kCurrentOf;
            break;
        case kColumnEqual:
            mark.equal = mark.equal || item->hashValue == number;
            break;
        default:
            break;
        }
    }
    join_marks(&marked, mark);
    return marked;
}

} // namespace interlock::inline statement

#include "statement/target.h"

namespace interlock::inline statement {

// A look at the relation cache: the statement holds a lock on the table already.
static bool can_fire_row_triggers(Oid relid) {
    Relation rel = RelationIdGetRelation(relid);
    if (rel == nullptr)
        return false;
    const TriggerDesc* triggers = rel->trigdesc;
    bool can = rel->rd_rel->relhassubclass ||
               (triggers != nullptr &&
                (triggers->trig_update_before_row || triggers->trig_delete_before_row));
    RelationClose(rel);
    return can;
}

static bool writes_rows(const Query* query) {
    switch (query->commandType) {
    case CMD_UPDATE:
    case CMD_DELETE:
    case CMD_MERGE:
        return true;
    case CMD_INSERT:
        return query->onConflict != nullptr && query->onConflict->action == ONCONFLICT_UPDATE;
    default:
        return false;
    }
}

// Tables of which one is a child of the other, or that have a child in common, share rows.
static bool share_rows(Oid left, Oid right) {
    if (left == right)
        return true;
    if (!has_subclass(left) && !has_subclass(right))
        return false;
    List* of_right = find_all_inheritors(right, NoLock, nullptr);
    ListCell* cell;
    foreach (cell, find_all_inheritors(left, NoLock, nullptr))
        if (list_member_oid(of_right, lfirst_oid(cell)))
            return true;
    return false;
}

// The row that ON CONFLICT calls excluded has an entry of the table's, too.
static bool is_target(const Target* target, const RangeTblEntry* entry) {
    if (entry == target->entry)
        return true;
    const OnConflictExpr* conflict = target->query->onConflict;
    return conflict != nullptr && conflict->exclRelIndex > 0 &&
           entry == rt_fetch(conflict->exclRelIndex, target->query->rtable);
}

static bool finds_target(Node* node, void* context) {
    if (node == nullptr)
        return false;
    if (IsA(node, RangeTblEntry)) {
        const auto* target = static_cast<const Target*>(context);
        const auto* entry = reinterpret_cast<const RangeTblEntry*>(node);
        return entry->rtekind == RTE_RELATION && !is_target(target, entry) &&
               share_rows(target->entry->relid, entry->relid);
    }
    if (IsA(node, Query))
        return walk_query(reinterpret_cast<Query*>(node), finds_target, context,
                          QTW_EXAMINE_RTES_BEFORE);
    return walk_expression(node, finds_target, context);
}

bool target_of(Query* statement, Query* query, Target* target) {
    if (!writes_rows(query))
        return false;
    RangeTblEntry* entry = rt_fetch(query->resultRelation, query->rtable);
    if (entry->rtekind != RTE_RELATION || !can_fire_row_triggers(entry->relid))
        return false;
    *target = {statement, query, entry};
    return true;
}

bool reads_elsewhere(Target* target) {
    if (target->reads_elsewhere < 0)
        target->reads_elsewhere =
            walk_query(target->statement, finds_target, target, QTW_EXAMINE_RTES_BEFORE) ? 1 : 0;
    return target->reads_elsewhere > 0;
}

} // namespace interlock::inline statement

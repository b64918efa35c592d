#include "partition_move.h"

#include "direct_execution.h"
#include "row.h"

namespace interlock {

namespace {

bool partition_columns_change(const RowChange& change) {
    const Bitmapset* columns = change.facts->partition_columns;
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;)
        if (!same_value(RelationGetDescr(change.rel), change.old_row, change.new_row, column))
            return true;
    return false;
}

bool leaves_partition(Relation rel, TupleTableSlot* row) {
    EState* executor = CreateExecutorState();
    ResultRelInfo* target = makeNode(ResultRelInfo);
    InitResultRelInfo(target, rel, 1, nullptr, 0);
    bool leaves = !ExecPartitionCheck(target, row, executor, false);
    FreeExecutorState(executor);
    return leaves;
}

// The row with the columns of the table at the top.
TupleTableSlot* row_of_root(const RowChange& change, Relation root, EState* estate) {
    TupleConversionMap* map =
        convert_tuples_by_name(RelationGetDescr(change.rel), RelationGetDescr(root));
    if (map == nullptr)
        return change.new_row;
    TupleTableSlot* row = ExecInitExtraTupleSlot(estate, RelationGetDescr(root), &TTSOpsVirtual);
    return execute_attr_map_slot(map->attrMap, change.new_row, row);
}

// As COPY routes the rows that it reads.
ModifyTableState* routing_state(EState* estate, Relation root) {
    auto* state = makeNode(ModifyTableState);
    state->ps.state = estate;
    state->operation = CMD_INSERT;
    state->mt_nrels = 1;
    state->resultRelInfo = open_target(estate, root, nullptr, nullptr);
    state->rootResultRelInfo = state->resultRelInfo;
    return state;
}

} // namespace

Oid root_of(Relation rel) {
    Oid relid = RelationGetRelid(rel);
    if (!rel->rd_rel->relispartition)
        return relid;
    List* ancestors = get_partition_ancestors(relid);
    return ancestors != NIL ? llast_oid(ancestors) : relid;
}

bool moves_row(const RowChange& change) {
    return change.facts->partition_columns != nullptr && partition_columns_change(change) &&
           leaves_partition(change.rel, change.new_row);
}

void in_new_partition(const RowChange& change, PartitionVisitor visit, void* closure) {
    Relation root = table_open(root_of(change.rel), AccessShareLock);
    EState* estate = CreateExecutorState();
    MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);
    ModifyTableState* state = routing_state(estate, root);
    PartitionTupleRouting* routing = ExecSetupPartitionTupleRouting(estate, root);
    TupleTableSlot* row = row_of_root(change, root, estate);
    ResultRelInfo* partition =
        ExecFindPartition(state, state->rootResultRelInfo, routing, row, estate);
    visit(closure, partition->ri_RelationDesc, partition->ri_TrigDesc);
    ExecCleanupTupleRouting(state, routing);
    MemoryContextSwitchTo(caller);
    free_state(estate);
    table_close(root, NoLock);
}

} // namespace interlock

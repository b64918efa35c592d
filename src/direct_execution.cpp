#include "direct_execution.h"

namespace interlock {

namespace {

RangeTblEntry* range_table_entry(Relation rel) {
    auto* entry = makeNode(RangeTblEntry);
    entry->rtekind = RTE_RELATION;
    entry->relid = RelationGetRelid(rel);
    entry->relkind = rel->rd_rel->relkind;
    entry->rellockmode = RowExclusiveLock;
    return entry;
}

} // namespace

Bitmapset* offset_columns(const Bitmapset* columns) {
    Bitmapset* result = nullptr;
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;)
        result = bms_add_member(result, column - FirstLowInvalidHeapAttributeNumber);
    return result;
}

ResultRelInfo* open_target(EState* estate, Relation rel, Bitmapset* inserted, Bitmapset* updated) {
    set_changed_columns(estate, range_table_entry(rel), inserted, updated);
    auto* target = makeNode(ResultRelInfo);
    InitResultRelInfo(target, rel, 1, nullptr, 0);
    // AFTER triggers look for their table here.
    estate->es_opened_result_relations = list_make1(target);
    return target;
}

void begin_query(EState* estate) {
    estate->es_snapshot = GetActiveSnapshot();
    estate->es_output_cid = GetCurrentCommandId(true);
    AfterTriggerBeginQuery();
}

void free_state(EState* estate) {
    // Also closes the tables of triggers that a foreign key's cascade fired.
    ExecCloseResultRelations(estate);
    ExecResetTupleTable(estate->es_tupleTable, false);
    FreeExecutorState(estate);
}

} // namespace interlock

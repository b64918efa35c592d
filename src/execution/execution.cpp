#include "execution/execution.h"

namespace interlock::inline execution {

static RangeTblEntry* range_table_entry(Relation rel) {
    auto* entry = makeNode(RangeTblEntry);
    entry->rtekind = RTE_RELATION;
    entry->relid = RelationGetRelid(rel);
    entry->relkind = rel->rd_rel->relkind;
    entry->rellockmode = RowExclusiveLock;
    return entry;
}

static Expr* copy_of(const Expr* expression) {
    return static_cast<Expr*>(copyObjectImpl(expression));
}

static Expr* planned(const TableCheck& check) {
    return check.planned ? check.expression : expression_planner(copy_of(check.expression));
}

// If the table has changed meanwhile, the metadata is not used, and the executor prepares the
// checks itself.
static void prepare_checks(ResultRelInfo* target, EState* estate, const TableInfo* info) {
    if (!info->valid || info->checks == nullptr || check_states(target) != nullptr)
        return;
    MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);
    int count = info->columns->constr->num_check;
    auto** states = static_cast<ExprState**>(palloc0(sizeof(ExprState*) * count));
    for (int i = 0; i < count; i++)
        if (info->checks[i].expression != nullptr)
            states[i] = ExecInitExpr(planned(info->checks[i]), nullptr);
    check_states(target) = states;
    MemoryContextSwitchTo(caller);
}

Bitmapset* offset_columns(const Bitmapset* columns) {
    constexpr int kOffset = -FirstLowInvalidHeapAttributeNumber;
    static_assert(kOffset > 0 && kOffset < BITS_PER_BITMAPWORD);
    if (columns == nullptr)
        return nullptr;
    int last = columns->nwords * BITS_PER_BITMAPWORD - 1;
    Bitmapset* result = bms_make_singleton(last + kOffset); // makes room for all
    bitmapword carried = 0;
    for (int i = 0; i < columns->nwords; i++) {
        result->words[i] = columns->words[i] << kOffset | carried;
        carried = columns->words[i] >> (BITS_PER_BITMAPWORD - kOffset);
    }
    result->words[columns->nwords] = carried;
    if (carried == 0)
        result->nwords--; // a set has no empty word at its end
    return result;
}

ResultRelInfo* open_target(EState* estate, Relation rel, Bitmapset* inserted, Bitmapset* updated,
                           bool fires_triggers) {
    set_changed_columns(estate, range_table_entry(rel), inserted, updated);
    auto* target = makeNode(ResultRelInfo);
    target->ri_RangeTableIndex = 1;
    target->ri_RelationDesc = rel;
    if (fires_triggers)
        InitResultRelInfo(target, rel, 1, nullptr, 0);
    // AFTER triggers look for their table here.
    estate->es_opened_result_relations = list_make1(target);
    return target;
}

void begin_query(EState* estate) {
    ResetPerTupleExprContext(estate); // of the row before
    estate->es_snapshot = GetActiveSnapshot();
    estate->es_output_cid = GetCurrentCommandId(true);
    AfterTriggerBeginQuery();
}

void check_row(ResultRelInfo* target, EState* estate, TupleTableSlot* row, const TableInfo* info) {
    if (RelationGetDescr(target->ri_RelationDesc)->constr == nullptr)
        return;
    prepare_checks(target, estate, info);
    slot_getallattrs(row); // else it is taken apart bit by bit, as each column is asked for
    ExecConstraints(target, row, estate);
}

void free_state(EState* estate) {
    // Also closes the tables of triggers that a foreign key's cascade fired.
    ExecCloseResultRelations(estate);
    ExecResetTupleTable(estate->es_tupleTable, false);
    FreeExecutorState(estate);
}

} // namespace interlock::inline execution

#include "direct_execution.h"

#include "scope.h"

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

Expr** read_checks(const TupleConstr* constraints) {
    int count = constraints->num_check;
    auto** checks = static_cast<Expr**>(palloc0(sizeof(Expr*) * count));
    for (int i = 0; i < count; i++)
        if (is_enforced(constraints->check[i]))
            checks[i] = static_cast<Expr*>(stringToNode(constraints->check[i].ccbin));
    return checks;
}

Expr* copy_of(const Expr* expression) { return static_cast<Expr*>(copyObjectImpl(expression)); }

// The executor would read the text of each check for each statement, which costs more than to write
// the row. They are planned anew: what they call may have changed.
void prepare_checks(ResultRelInfo* target, EState* estate, const RelationFacts* facts) {
    const TupleConstr* constraints = RelationGetDescr(target->ri_RelationDesc)->constr;
    if (constraints == nullptr || constraints->num_check == 0)
        return;
    if (facts->checks == nullptr)
        facts->checks = in_context(facts->memory, [&] { return read_checks(constraints); });
    int count = constraints->num_check;
    auto** states = static_cast<ExprState**>(palloc0(sizeof(ExprState*) * count));
    for (int i = 0; i < count; i++)
        if (facts->checks[i] != nullptr)
            states[i] = ExecPrepareExpr(copy_of(facts->checks[i]), estate);
    check_states(target) = states;
}

} // namespace

Bitmapset* offset_columns(const Bitmapset* columns) {
    Bitmapset* result = nullptr;
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;)
        result = bms_add_member(result, column - FirstLowInvalidHeapAttributeNumber);
    return result;
}

ResultRelInfo* open_target(EState* estate, Relation rel, const RelationFacts* facts,
                           Bitmapset* inserted, Bitmapset* updated) {
    set_changed_columns(estate, range_table_entry(rel), inserted, updated);
    auto* target = makeNode(ResultRelInfo);
    InitResultRelInfo(target, rel, 1, nullptr, 0);
    // AFTER triggers look for their table here.
    estate->es_opened_result_relations = list_make1(target);
    prepare_checks(target, estate, facts);
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

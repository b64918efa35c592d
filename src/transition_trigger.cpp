// The trigger that holds every update to the declared transitions.

#include "row.h"
#include "row_change.h"
#include "transition.h"

using namespace interlock;

namespace {

void check_update(Relation rel, const RelationFacts* facts, const StateMachine* machine,
                  HeapTuple old_row, HeapTuple new_row);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(transition_trigger);

Datum transition_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "transition_trigger");
    if (!TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
        return PointerGetDatum(trigger->tg_trigtuple);
    Relation rel = trigger->tg_relation;
    const RelationFacts* facts = facts_of(rel);
    const StateMachine* machine = machine_of_trigger(rel, facts, trigger->tg_trigger);
    check_update(rel, facts, machine, trigger->tg_trigtuple, trigger->tg_newtuple);
    return PointerGetDatum(trigger->tg_newtuple);
}
}

namespace {

void check_update(Relation rel, const RelationFacts* facts, const StateMachine* machine,
                  HeapTuple old_row, HeapTuple new_row) {
    TupleDesc columns = RelationGetDescr(rel);
    bool stays = same_value(columns, old_row, new_row, machine->column);
    if (stays && facts->partition_columns == nullptr)
        return;
    const char* to = state_of_row(machine, columns, new_row);
    if (!stays) {
        const char* from = state_of_row(machine, columns, old_row);
        if (!may_move(machine, from, to)) {
            Key key = key_of_tuple(facts, old_row);
            raise_not_allowed(rel, facts, machine, &key, from, to);
        }
    }
    if (facts->partition_columns != nullptr && !may_start(machine, to))
        note_move(rel, facts, machine, old_row, new_row, to);
}

} // namespace

namespace interlock {

HeapTuple judge_transitions(const RowChange& change) {
    for (int i = 0; i < change.facts->machine_count; i++) {
        const StateMachine* machine = &change.facts->machines[i];
        if (trigger_fires(machine->enabled))
            check_update(change.rel, change.facts, usable_machine(change.rel, machine),
                         change.old_row, change.new_row);
    }
    return change.new_row;
}

} // namespace interlock

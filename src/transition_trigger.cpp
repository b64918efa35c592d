// The trigger that holds every writer to the declared transitions.

#include "error.h"
#include "transition.h"

using namespace interlock;

namespace {

const StateMachine* machine_of_trigger(Relation rel, const RelationFacts* facts,
                                       const Trigger* trigger);
void check_insert(Relation rel, const StateMachine* machine, HeapTuple row);
void check_update(Relation rel, const RelationFacts* facts, const StateMachine* machine,
                  HeapTuple old_row, HeapTuple new_row);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(transition_trigger);

Datum transition_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "transition_trigger");
    Relation rel = trigger->tg_relation;
    const RelationFacts* facts = facts_of(rel);
    const StateMachine* machine = machine_of_trigger(rel, facts, trigger->tg_trigger);
    if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event)) {
        check_update(rel, facts, machine, trigger->tg_trigtuple, trigger->tg_newtuple);
        return PointerGetDatum(trigger->tg_newtuple);
    }
    if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
        check_insert(rel, machine, trigger->tg_trigtuple);
    return PointerGetDatum(trigger->tg_trigtuple);
}
}

namespace {

const StateMachine* machine_of_trigger(Relation rel, const RelationFacts* facts,
                                       const Trigger* trigger) {
    const char* name = trigger->tgnargs > 0 ? trigger->tgargs[0] : "";
    for (int i = 0; i < facts->machine_count; i++)
        if (strcmp(NameStr(facts->machines[i].name), name) == 0)
            return usable_machine(rel, &facts->machines[i]);
    elog(ERROR, "transition trigger without configuration");
    pg_unreachable();
}

const char* state_of(const StateMachine* machine, TupleDesc columns, HeapTuple row) {
    bool is_null;
    Datum value = heap_getattr(row, machine->column, columns, &is_null);
    return state_text(machine, value, is_null);
}

void check_insert(Relation rel, const StateMachine* machine, HeapTuple row) {
    const char* state = state_of(machine, RelationGetDescr(rel), row);
    if (!may_start(machine, state))
        raise_not_allowed(rel, nullptr, machine, nullptr, nullptr, state);
}

bool same_state(const StateMachine* machine, TupleDesc columns, HeapTuple old_row,
                HeapTuple new_row) {
    Form_pg_attribute attribute = TupleDescAttr(columns, machine->column - 1);
    bool old_null, new_null;
    Datum old_value = heap_getattr(old_row, machine->column, columns, &old_null);
    Datum new_value = heap_getattr(new_row, machine->column, columns, &new_null);
    if (old_null || new_null)
        return old_null == new_null;
    return datum_image_eq(old_value, new_value, attribute->attbyval, attribute->attlen);
}

void check_update(Relation rel, const RelationFacts* facts, const StateMachine* machine,
                  HeapTuple old_row, HeapTuple new_row) {
    TupleDesc columns = RelationGetDescr(rel);
    if (same_state(machine, columns, old_row, new_row))
        return;
    const char* from = state_of(machine, columns, old_row);
    const char* to = state_of(machine, columns, new_row);
    if (may_move(machine, from, to))
        return;
    Key key = key_of_tuple(facts, old_row);
    raise_not_allowed(rel, facts, machine, &key, from, to);
}

} // namespace

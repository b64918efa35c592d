// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "table/facet.h"
#include "transition/transition.h"
#include "transition/trigger.h"

namespace interlock::transition {

int machines_facet;

static void find_column(TupleDesc columns, StateMachine* machine) {
    AttrNumber column = find_attribute(columns, NameStr(machine->name));
    if (column == InvalidAttrNumber || !can_be_state(TupleDescAttr(columns, column - 1)->atttypid))
        return;
    machine->column = column;
    machine->type = TupleDescAttr(columns, column - 1)->atttypid;
    machine->base_type = getBaseType(machine->type);
    machine->typmod = TupleDescAttr(columns, column - 1)->atttypmod;
    machine->takes_datum = machine->typmod < 0 && get_typlen(machine->type) > 0;
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(machine->type, &output, &is_varlena);
    fmgr_info_cxt(output, &machine->output, CurrentMemoryContext);
}

static void load_machine(TableInfo* info, const Trigger* trigger) {
    StateMachine machine = {};
    static_cast<OwnTrigger&>(machine) = own_trigger(info->relid, trigger);
    machine.well_formed = read_declaration(&machine, info->relid, trigger);
    if (machine.well_formed)
        find_column(info->columns, &machine);
    for (StateMachine& other : machines_of(info))
        if (machine.well_formed && strcmp(NameStr(other.name), NameStr(machine.name)) == 0) {
            other.twin = machine.trigger;
            machine.twin = other.trigger;
        }
    *add_item<StateMachine>(info, machines_facet) = machine;
}

constexpr TableFacet kFacet = {
    .number = &machines_facet,
    .trigger_function = "transition_trigger",
    .load_trigger = load_machine,
    .mechanism = &kTransitionMechanism,
    .check = check_transitions,
};

extern const Concept kTransitionConcept = {
    .name = "transition",
    .facets = &kFacet,
    .facet_count = 1,
};

} // namespace interlock::transition

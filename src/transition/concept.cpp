// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "table/part.h"
#include "transition/mechanism.h"
#include "transition/transition.h"
#include "transition/trigger.h"

namespace interlock::transition {

int machines_part;

static void load_machine(TableInfo* info, const Trigger* trigger) {
    auto* machines = part_of<StateMachines>(info, machines_part);
    if (machines == nullptr) {
        machines = static_cast<StateMachines*>(palloc0(sizeof(StateMachines)));
        machines->first = static_cast<StateMachine*>(palloc(sizeof(StateMachine)));
        info->parts[machines_part] = machines;
    }
    machines->first = static_cast<StateMachine*>(
        repalloc(machines->first, sizeof(StateMachine) * (machines->count + 1)));
    StateMachine machine = read_state_machine(info->relid, info->columns, trigger);
    for (int i = 0; i < machines->count; i++)
        if (strcmp(NameStr(machines->first[i].name), NameStr(machine.name)) == 0) {
            machines->first[i].twin = machine.trigger;
            machine.twin = machines->first[i].trigger;
        }
    machines->first[machines->count++] = machine;
}

constexpr TablePart kPart = {
    .number = &machines_part,
    .trigger_function = "transition_trigger",
    .load_trigger = load_machine,
    .mechanism = &kTransitionMechanism,
    .check = check_transitions,
};

extern const Concept kTransitionConcept = {
    .name = "transition",
    .parts = &kPart,
    .part_count = 1,
};

} // namespace interlock::transition

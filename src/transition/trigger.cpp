// The trigger that holds every update to the declared transitions.

#include "transition/trigger.h"
#include "execution/partition_move.h"
#include "execution/probe.h"
#include "execution/row_change.h"
#include "statement/running.h"
#include "table/last_word.h"
#include "table/row.h"
#include "transition/errors.h"
#include "transition/guard.h"
#include "transition/transition.h"

namespace interlock::transition {

namespace {

// Who writes, and by which call of the trigger; null: a function, which does not fire it.
struct Asking {
    bool by_function;
    FmgrInfo* caller;
};

} // namespace

static bool check_update(const RowChange& change, const StateMachine* machine,
                         const Asking& asking);

extern "C" {
PG_FUNCTION_INFO_V1(transition_trigger);

Datum transition_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "transition_trigger");
    if (!TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
        return PointerGetDatum(trigger->tg_trigtuple);
    Relation rel = trigger->tg_relation;
    const TableInfo* info = table_info(rel);
    const StateMachine* machine = machine_of_trigger(rel, info, trigger->tg_trigger);
    require_last_word(rel, info, TRIGGER_TYPE_UPDATE);
    RowChange change = change_of(trigger, info);
    if (!check_update(change, machine, {is_fired_by_function(), fcinfo->flinfo}))
        return Datum{0};
    refuse_unchecked_move(change);
    return PointerGetDatum(trigger->tg_newtuple);
}
}

static const char* state_in(const StateMachine* machine, TupleTableSlot* row) {
    bool is_null;
    Datum state = slot_getattr(row, machine->column, &is_null);
    return state_text(machine, state, is_null);
}

// Whether an update that leaves the state is a transition, too. The apply worker of logical
// replication names every column; its rows were checked where they come from.
static bool is_repeat(const RowChange& change, const StateMachine* machine) {
    return machine->rejects_repeats &&
           bms_is_member(machine->column - FirstLowInvalidHeapAttributeNumber, change.assigned) &&
           SessionReplicationRole != SESSION_REPLICATION_ROLE_REPLICA;
}

// One state can have several values: 1.0 and 1.00.
static bool is_same_state(const char* from, const char* to) {
    return from == nullptr || to == nullptr ? from == to : strcmp(from, to) == 0;
}

// False when the guard refuses the row of try_transition.
static bool ask_guard(const RowChange& change, const StateMachine* machine, const char* from,
                      const char* to, const Asking& asking) {
    const Guard* guard = guard_of(machine, from, to);
    if (guard == nullptr)
        return true;
    const char* objection = objection_of(*guard, machine, change, asking.caller);
    if (objection == nullptr)
        return true;
    const GuardedWrite* write = firing_write(change, machine);
    if (write == nullptr) {
        refuse_state(change.rel, change.info, machine, row_in(change.old_row),
                     {.from = from, .to = to, .guard = guard, .objection = objection},
                     asking.by_function);
    }
    write->objection = MemoryContextStrdup(write->memory, objection);
    return false;
}

static bool check_transition(const RowChange& change, const StateMachine* machine, const char* to,
                             const Asking& asking) {
    const char* from = state_in(machine, change.old_row);
    if (is_same_state(from, to) && (to == nullptr || !is_repeat(change, machine)))
        return true;
    if (!asking.by_function)
        count(change.info, CountedKind::kTransitions, Counter::kCalls);
    if (!may_move(machine, from, to))
        refuse_state(change.rel, change.info, machine, row_in(change.old_row),
                     {.from = from, .to = to}, asking.by_function);
    return machine->guards == nullptr || ask_guard(change, machine, from, to, asking);
}

// False when the row must not be written.
static bool check_update(const RowChange& change, const StateMachine* machine,
                         const Asking& asking) {
    const TableInfo* info = change.info;
    bool stays =
        same_value(RelationGetDescr(change.rel), change.old_row, change.new_row, machine->column);
    if (stays && is_repeat(change, machine))
        stays = false;
    if (stays && info->partition_columns == nullptr)
        return true;
    const char* to = state_in(machine, change.new_row);
    if (!stays && !check_transition(change, machine, to, asking))
        return false;
    if (info->partition_columns != nullptr && !may_start(machine, to) &&
        OidIsValid(new_partition(change)))
        note_move(change.rel, info, machine, row_in(change.new_row), to);
    return true;
}

bool check_transitions(RowChange* change) {
    for (const StateMachine& machine : machines_of(change->info)) {
        if (!trigger_fires(machine.enabled))
            continue;
        // A table with guards fires its triggers: theirs have a condition (load_row_checks). One
        // that is fired at another time is forged.
        if (machine.guards != nullptr)
            raise_forged(change->rel, machine.trigger, "define_transitions");
        (void)check_update(*change, usable_machine(change->rel, &machine), {true, nullptr});
    }
    return true;
}

} // namespace interlock::transition

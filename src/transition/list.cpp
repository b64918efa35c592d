// The rows of the view transitions: what is declared, from the catalog alone. It opens no table, so
// that it waits for no lock, and runs no code of others.

#include "server/append.h"
#include "table/catalog_trigger.h"
#include "table/relation.h"
#include "transition/guard.h"
#include "transition/transition.h"

namespace interlock::transition {

static bool has_state_column(Oid relid, const char* name);
static void list_machine(Oid relid, const StateMachine* machine, ReturnSetInfo* output);

extern "C" {
PG_FUNCTION_INFO_V1(list_transitions);

Datum list_transitions(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    each_trigger_of("transition_trigger", InvalidOid, [&](Oid relid, const Trigger* trigger) {
        StateMachine machine = {};
        // A trigger of others, or a column that is gone: writes fail.
        if (!trigger->tgisclone && may_see_table(relid) &&
            read_declaration(&machine, relid, trigger) &&
            has_state_column(relid, NameStr(machine.name)))
            list_machine(relid, &machine, output);
    });
    return 0;
}
}

// A column of that name which can be a state.
// The table is not locked: what one look finds may be gone at the next, and a dropped column has no
// type.
static bool has_state_column(Oid relid, const char* name) {
    HeapTuple tuple = SearchSysCacheAttName(relid, name);
    if (!HeapTupleIsValid(tuple))
        return false;
    auto* column = reinterpret_cast<Form_pg_attribute>(GETSTRUCT(tuple));
    Oid type = column->attnum > 0 ? column->atttypid : InvalidOid;
    ReleaseSysCache(tuple);
    return SearchSysCacheExists1(TYPEOID, ObjectIdGetDatum(type)) && can_be_state(type);
}

namespace {

// States in order, each once. A declaration may have a hundred thousand of them.
struct States {
    const char** first;
    int count;
    int room;
    const char** begin() const { return first; }
    const char** end() const { return first + count; }
};

} // namespace

static int compare_states(const void* left, const void* right) {
    return strcmp(*static_cast<const char* const*>(left), *static_cast<const char* const*>(right));
}

static void add_states(States* states, JsonbContainer* json) {
    each_state(json, [&](std::string_view state) {
        const char* text = pnstrdup(state.data(), state.size());
        append(&states->first, &states->count, &states->room, text);
    });
}

static void sort_distinct(States* states) {
    if (states->count == 0)
        return;
    qsort(states->first, states->count, sizeof(char*), compare_states);
    int distinct = 1;
    for (int i = 1; i < states->count; i++)
        if (strcmp(states->first[i], states->first[distinct - 1]) != 0)
            states->first[distinct++] = states->first[i];
    states->count = distinct;
}

static bool contains(const States& states, const char* state) {
    return states.count > 0 &&
           bsearch(&state, states.first, states.count, sizeof(char*), compare_states) != nullptr;
}

static States all_states(const StateMachine* machine) {
    States states = {};
    add_states(&states, &machine->transitions->root);
    if (machine->initial != nullptr)
        add_states(&states, &machine->initial->root);
    sort_distinct(&states);
    return states;
}

static States sorted_targets(const StateMachine* machine, const char* from) {
    States states = {};
    JsonbValue targets;
    if (getKeyJsonValueFromContainer(&machine->transitions->root, from,
                                     static_cast<int>(strlen(from)), &targets) != nullptr)
        add_states(&states, targets.val.binary.data);
    sort_distinct(&states);
    return states;
}

namespace {

// One row of the view.
struct Transition {
    Oid relid;
    const char* column;
    const char* from;
    const char* to; // null for a state from which none is declared
    const Guard* guard;
    bool is_initial;
};

} // namespace

static void list_transition(const Transition& row, ReturnSetInfo* output) {
    Datum values[6] = {ObjectIdGetDatum(row.relid)};
    bool nulls[6] = {false, false, false, row.to == nullptr, row.guard == nullptr, false};
    values[1] = DirectFunctionCall1(namein, CStringGetDatum(row.column));
    values[2] = CStringGetTextDatum(row.from);
    if (row.to != nullptr)
        values[3] = CStringGetTextDatum(row.to);
    if (row.guard != nullptr)
        values[4] = ObjectIdGetDatum(row.guard->function);
    values[5] = BoolGetDatum(row.is_initial);
    tuplestore_putvalues(output->setResult, output->setDesc, values, nulls);
}

static void list_machine(Oid relid, const StateMachine* machine, ReturnSetInfo* output) {
    const char* column = NameStr(machine->name);
    States initial = {};
    if (machine->initial != nullptr)
        add_states(&initial, &machine->initial->root);
    sort_distinct(&initial);
    for (const char* from : all_states(machine)) {
        CHECK_FOR_INTERRUPTS();
        bool is_initial = machine->initial == nullptr || contains(initial, from);
        States targets = sorted_targets(machine, from);
        if (targets.count == 0)
            list_transition({relid, column, from, nullptr, nullptr, is_initial}, output);
        for (const char* to : targets)
            list_transition({relid, column, from, to, guard_of(machine, from, to), is_initial},
                            output);
    }
}

} // namespace interlock::transition

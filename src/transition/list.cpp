// The rows of the view transitions: what is declared, from the catalog alone. It opens no table, so
// that it waits for no lock, and runs no code of others.

#include "server/scope.h"
#include "table/catalog_trigger.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "transition/guard.h"
#include "transition/transition.h"

namespace interlock::transition {

// A column of that name which can be a state.
static bool has_state_column(Oid relid, const char* name);
static void list_machine(Oid relid, const char* column, const StateMachine* machine,
                         ReturnSetInfo* output);
static void list_trigger(HeapTuple row, TupleDesc columns, ReturnSetInfo* output);

extern "C" {
PG_FUNCTION_INFO_V1(list_transitions);

Datum list_transitions(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    with_spi([&] {
        run_command(psprintf(
            "SELECT t.tgrelid, t.tgnargs, t.tgargs, t.tgqual::pg_catalog.text "
            "FROM pg_catalog.pg_trigger t "
            "JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.tgrelid "
            "WHERE t.tgfoid OPERATOR(pg_catalog.=) %u "
            "AND t.tgparentid OPERATOR(pg_catalog.=) 0 "
            "AND pg_catalog.octet_length(t.tgargs) OPERATOR(pg_catalog.<=) %zu "
            "AND (t.tgqual IS NULL OR pg_catalog.octet_length(t.tgqual::pg_catalog.text) "
            "OPERATOR(pg_catalog.<=) %zu) "
            "AND (c.relpersistence OPERATOR(pg_catalog.<>) 't' OR "
            "c.relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()) "
            "AND (pg_catalog.has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, "
            "REFERENCES, TRIGGER') OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT, INSERT, "
            "UPDATE, REFERENCES')) ORDER BY t.tgrelid, t.tgname",
            own_trigger_function("transition_trigger"), kMostArgumentBytes, kMostArgumentBytes));
        SPITupleTable* rows = SPI_tuptable;
        for (uint64 i = 0; i < rows->numvals; i++)
            in_scratch([&] { list_trigger(rows->vals[i], rows->tupdesc, output); });
    });
    return 0;
}
}

static Trigger trigger_of(HeapTuple row, TupleDesc columns);

static void list_trigger(HeapTuple row, TupleDesc columns, ReturnSetInfo* output) {
    bool is_null;
    Oid relid = DatumGetObjectId(SPI_getbinval(row, columns, 1, &is_null));
    Trigger trigger = trigger_of(row, columns);
    StateMachine machine = {};
    // A trigger of others, or a column that is gone: writes fail.
    if (argument_count(&trigger) > 0 && has_state_column(relid, trigger.tgargs[0]) &&
        read_declaration(&machine, relid, &trigger))
        list_machine(relid, trigger.tgargs[0], &machine, output);
}

// As far as read_declaration() reads it.
static Trigger trigger_of(HeapTuple row, TupleDesc columns) {
    Trigger trigger = {};
    bool is_null;
    trigger.tgnargs = DatumGetInt16(SPI_getbinval(row, columns, 2, &is_null));
    trigger.tgargs = arguments_in(DatumGetByteaPP(SPI_getbinval(row, columns, 3, &is_null)),
                                  argument_count(&trigger));
    trigger.tgqual = SPI_getvalue(row, columns, 4); // null if there is none
    return trigger;
}

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
    int capacity;
    const char** begin() const { return first; }
    const char** end() const { return first + count; }
};

} // namespace

static int compare_states(const void* left, const void* right) {
    return strcmp(*static_cast<const char* const*>(left), *static_cast<const char* const*>(right));
}

static void add_state(States* states, const JsonbValue& value) {
    if (states->count == states->capacity) {
        states->capacity = Max(16, 2 * states->capacity);
        Size size = sizeof(char*) * states->capacity;
        states->first = static_cast<const char**>(
            states->first != nullptr ? repalloc(states->first, size) : palloc(size));
    }
    states->first[states->count++] = pnstrdup(value.val.string.val, value.val.string.len);
}

// The members' names and the elements.
static void add_states(States* states, JsonbContainer* json) {
    JsonbIterator* iterator = JsonbIteratorInit(json);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE;)
        if (token == WJB_KEY || token == WJB_ELEM)
            add_state(states, value);
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

static void list_machine(Oid relid, const char* column, const StateMachine* machine,
                         ReturnSetInfo* output) {
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

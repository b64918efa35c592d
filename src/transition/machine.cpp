#include "server/arguments.h"
#include "server/error.h"
#include "server/scope.h"
#include "table/mechanism.h"
#include "table/restricted.h"
#include "table/row.h"
#include "transition/guard.h"
#include "transition/text.h"
#include "transition/transition.h"
#include "transition/unknown_state.h"

namespace interlock::transition {

// Not a copy. Null: the state has no transitions.
static JsonbContainer* targets_of(const StateMachine* machine, const char* from) {
    JsonbValue value;
    if (getKeyJsonValueFromContainer(&machine->transitions->root, from, strlen(from), &value) ==
        nullptr)
        return nullptr;
    return value.val.binary.data;
}

static bool contains_state(JsonbContainer* array, const char* state) {
    JsonbValue wanted;
    wanted.type = jbvString;
    wanted.val.string.val = const_cast<char*>(state);
    wanted.val.string.len = strlen(state);
    return findJsonbValueFromContainer(array, JB_FARRAY, &wanted) != nullptr;
}

static bool is_declared(const StateMachine* machine, const char* state) {
    if (targets_of(machine, state) != nullptr)
        return true;
    JsonbIterator* iterator = JsonbIteratorInit(&machine->transitions->root);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE;)
        if (token == WJB_ELEM && static_cast<size_t>(value.val.string.len) == strlen(state) &&
            memcmp(value.val.string.val, state, value.val.string.len) == 0)
            return true;
    return false;
}

bool knows_state(const StateMachine* machine, const char* state) {
    return is_declared(machine, state) ||
           (machine->initial != nullptr && contains_state(&machine->initial->root, state));
}

const char* allowed_json(const StateMachine* machine, const char* from) {
    JsonbContainer* allowed = nullptr;
    if (from != nullptr)
        allowed = targets_of(machine, from);
    else if (machine->initial != nullptr)
        allowed = &machine->initial->root;
    return allowed != nullptr ? JsonbToCString(nullptr, allowed, 0) : "[]";
}

static bool has_arguments(const Trigger* trigger) {
    return (argument_count(trigger) == 4 || argument_count(trigger) == 5) &&
           is_name(trigger->tgargs[0]) && is_transitions(trigger->tgargs[1]) &&
           (trigger->tgargs[2][0] == '\0' || is_states(trigger->tgargs[2])) &&
           (strcmp(trigger->tgargs[3], kAllowRepeats) == 0 ||
            strcmp(trigger->tgargs[3], kRejectRepeats) == 0);
}

Jsonb* parse_declaration(const char* text) {
    return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(text)));
}

char* declaration_text(const char* argument, Jsonb* json) {
    char* text = JsonbToCString(nullptr, &json->root, VARSIZE(json));
    if (strlen(text) > kMostTransitionBytes)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("%s are longer than %zu bytes", argument, kMostTransitionBytes)));
    return text;
}

bool can_be_state(Oid type) {
    Oid base = getBaseType(type);
    switch (base) {
    case INT2OID:
    case INT4OID:
    case INT8OID:
    case NUMERICOID:
    case BOOLOID:
    case UUIDOID:
        return true;
    default:
        return TypeCategory(base) == TYPCATEGORY_STRING || get_typtype(base) == TYPTYPE_ENUM;
    }
}

bool read_declaration(StateMachine* machine, Oid relid, const Trigger* trigger) {
    name_argument(trigger, 0, &machine->name);
    if (!has_arguments(trigger) || !read_guards(machine, relid, trigger))
        return false;
    machine->transitions = parse_declaration(trigger->tgargs[1]);
    if (trigger->tgargs[2][0] != '\0')
        machine->initial = parse_declaration(trigger->tgargs[2]);
    machine->rejects_repeats = strcmp(trigger->tgargs[3], kRejectRepeats) == 0;
    return true;
}

bool may_start(const StateMachine* machine, const char* state) {
    if (machine->initial == nullptr)
        return true;
    return state != nullptr && contains_state(&machine->initial->root, state);
}

bool may_move(const StateMachine* machine, const char* from, const char* to) {
    CHECK_FOR_INTERRUPTS(); // a caller may give many states
    if (to == nullptr)
        return false;
    if (from == nullptr)
        return machine->initial != nullptr ? contains_state(&machine->initial->root, to)
                                           : is_declared(machine, to);
    JsonbContainer* targets = targets_of(machine, from);
    return targets != nullptr && contains_state(targets, to);
}

List* states_after(const StateMachine* machine, const char* from) {
    JsonbContainer* container = nullptr;
    if (from != nullptr)
        container = targets_of(machine, from);
    else
        container = &(machine->initial != nullptr ? machine->initial : machine->transitions)->root;
    List* states = NIL;
    if (container != nullptr)
        each_state(container, [&](std::string_view state) {
            states = list_append_unique(states, makeString(pnstrdup(state.data(), state.size())));
        });
    ListCell* cell;
    foreach (cell, states)
        lfirst(cell) = strVal(lfirst(cell));
    return states;
}

static char* print_state(Oid base_type, FmgrInfo* output, Datum value) {
    switch (base_type) {
    case BOOLOID:
        return pstrdup(DatumGetBool(value) ? "true" : "false");
    case NUMERICOID:
        return numeric_normalize(DatumGetNumeric(value));
    default:
        return OutputFunctionCall(output, value);
    }
}

const char* state_text(const StateMachine* machine, Datum value, bool is_null) {
    return is_null
               ? nullptr
               : print_state(machine->base_type, const_cast<FmgrInfo*>(&machine->output), value);
}

const char* state_of_row(const StateMachine* machine, TupleDesc columns, HeapTuple row) {
    bool is_null;
    Datum value = heap_getattr(row, machine->column, columns, &is_null);
    return state_text(machine, value, is_null);
}

Datum state_datum(Oid type, int32 typmod, char* state) {
    Oid input, parameter;
    getTypeInputInfo(type, &input, &parameter);
    return OidInputFunctionCall(input, state, parameter, typmod);
}

char* canonical_state(Relation rel, Oid type, int32 typmod, char* state) {
    CHECK_FOR_INTERRUPTS();
    Oid function;
    bool is_varlena;
    getTypeOutputInfo(type, &function, &is_varlena);
    FmgrInfo output;
    fmgr_info(function, &output);
    auto read = [&] { return state_datum(type, typmod, state); };
    auto hint = [&] { hint_at_type(type, state); };
    Datum value = 0;
    as_configuring_owner(RelationGetRelid(rel), [&] { value = with_hint(hint, read); });
    return print_state(getBaseType(type), &output, value);
}

Datum state_argument(const Arguments& arguments, int n, const char* name, Relation rel,
                     const StateMachine* machine) {
    return state_value(rel, machine, arguments.required(n, name), arguments.type(n));
}

Datum state_value(Relation rel, const StateMachine* machine, Datum value, Oid type) {
    if (machine->takes_datum && type == machine->type)
        return value;
    char* state = print_value(type, value);
    return with_hint([&] { hint_at_states(rel, machine, state); },
                     [&] { return state_datum(machine->type, machine->typmod, state); });
}

const StateMachine* usable_machine(Relation rel, const StateMachine* machine) {
    require_own(rel, table_info(rel), machine, "define_transitions");
    if (machine->column == InvalidAttrNumber)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("state column \"%s\" of table \"%s\" is gone or has another type",
                    NameStr(machine->name), RelationGetRelationName(rel)),
             errhint("The table's owner notes what SELECT interlock.configuration(%s) shows, calls "
                     "interlock.drop_transitions with the old name of the column, and "
                     "interlock.define_transitions with its current name.",
                     quote_literal_cstr(qualified_name(rel)))));
    return machine;
}

void raise_no_transitions(Relation rel, const char* column) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    column != nullptr
                        ? errmsg("column \"%s\" of table \"%s\" has no transitions", column,
                                 RelationGetRelationName(rel))
                        : errmsg("table \"%s\" has no transitions", RelationGetRelationName(rel)),
                    errhint("Its owner can call interlock.define_transitions.")));
}

const StateMachine* machine_of_trigger(Relation rel, const TableInfo* info,
                                       const Trigger* trigger) {
    return find_machine(rel, info, argument_count(trigger) > 0 ? trigger->tgargs[0] : "");
}

const StateMachine* find_machine(Relation rel, const TableInfo* info, const char* column) {
    FacetList<StateMachine> machines = machines_of(info);
    if (column == nullptr && machines.count > 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("table \"%s\" has transitions on several columns",
                               RelationGetRelationName(rel)),
                        errhint("Name the column with state_column.")));
    for (const StateMachine& machine : machines)
        if (column == nullptr || strcmp(NameStr(machine.name), column) == 0)
            return usable_machine(rel, &machine);
    raise_no_transitions(rel, column);
}

} // namespace interlock::transition

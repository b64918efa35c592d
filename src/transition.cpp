#include "transition.h"

#include "arguments.h"
#include "error.h"
#include "plan.h"
#include "row.h"
#include "scope.h"

using namespace interlock;

namespace {

constexpr const char* kTriggerPrefix = "zzz_interlock_transition";

// What transition() and try_transition() are given.
struct Move {
    Relation rel;
    const RelationFacts* facts;
    const StateMachine* machine;
    Key key;
    char* from;
    char* to;
    Changes changes;
};

enum class MoveOutcome { kTransitioned, kStateChanged, kNotAllowed, kNotFound };

struct MoveResult {
    MoveOutcome outcome;
    const char* state; // the row's state afterwards, null when it has none or is not known
};

Move open_move(const Arguments& arguments);
MoveResult perform(const Move& move);
const char* outcome_name(MoveOutcome outcome);
[[noreturn]] void raise_state_changed(const Move& move, const char* state);
[[noreturn]] void raise_not_allowed(Relation rel, const RelationFacts* facts,
                                    const StateMachine* machine, const Key* key, const char* from,
                                    const char* to);
void check_insert(Relation rel, const RelationFacts* facts, const StateMachine* machine,
                  HeapTuple row);
void check_update(Relation rel, const RelationFacts* facts, const StateMachine* machine,
                  HeapTuple old_row, HeapTuple new_row);
const StateMachine* machine_of_trigger(Relation rel, const RelationFacts* facts,
                                       const Trigger* trigger);
const StateMachine* find_machine(Relation rel, const RelationFacts* facts, const char* column);
void check_state_column(Relation rel, AttrNumber column);
char* canonical_transitions(Relation rel, AttrNumber column, Jsonb* transitions);
char* canonical_initial(Relation rel, AttrNumber column, const Arguments& arguments, int n);
char* trigger_name(const char* column);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(define_transitions);
PG_FUNCTION_INFO_V1(drop_transitions);
PG_FUNCTION_INFO_V1(transition);
PG_FUNCTION_INFO_V1(try_transition);
PG_FUNCTION_INFO_V1(transition_trigger);

Datum define_transitions(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    const char* name = arguments.name(1, "state_column");
    Relation rel = open_own_table(arguments.relation(0), ShareRowExclusiveLock);
    AttrNumber column = column_number(rel, name);
    check_state_column(rel, column);
    char* transitions = canonical_transitions(rel, column, arguments.jsonb(2, "transitions"));
    char* initial = canonical_initial(rel, column, arguments, 3);
    char* command = psprintf(
        "CREATE OR REPLACE TRIGGER %s BEFORE INSERT OR UPDATE ON %s FOR EACH ROW "
        "EXECUTE FUNCTION interlock.transition_trigger(%s, %s, %s)",
        trigger_name(name), qualified_name(rel), quote_literal_cstr(name),
        quote_literal_cstr(transitions), quote_literal_cstr(initial));
    close_table(rel);
    with_spi([&] { run_command(command); });
    PG_RETURN_VOID();
}

Datum drop_transitions(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    const char* name = arguments.name(1, "state_column");
    Relation rel = open_own_table(arguments.relation(0), AccessExclusiveLock);
    find_machine(rel, facts_of(rel), name);
    char* command = psprintf("DROP TRIGGER %s ON %s", trigger_name(name), qualified_name(rel));
    close_table(rel);
    with_spi([&] { run_command(command); });
    PG_RETURN_VOID();
}

Datum transition(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Move move = open_move(arguments);
    MoveResult result = perform(move);
    switch (result.outcome) {
    case MoveOutcome::kTransitioned:
        break;
    case MoveOutcome::kStateChanged:
        raise_state_changed(move, result.state);
    case MoveOutcome::kNotAllowed:
        raise_not_allowed(move.rel, move.facts, move.machine, &move.key, move.from, move.to);
    case MoveOutcome::kNotFound:
        raise_no_such_row(move.rel, move.facts, move.key);
    }
    close_table(move.rel);
    PG_RETURN_VOID();
}

Datum try_transition(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    TupleDesc columns;
    if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "return type must be a row type");
    Move move = open_move(arguments);
    MoveResult result = perform(move);
    close_table(move.rel);
    Datum values[2] = {CStringGetTextDatum(outcome_name(result.outcome)), 0};
    bool nulls[2] = {false, result.state == nullptr};
    if (result.state != nullptr)
        values[1] = CStringGetTextDatum(result.state);
    return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), values, nulls));
}

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
        check_insert(rel, facts, machine, trigger->tg_trigtuple);
    return PointerGetDatum(trigger->tg_trigtuple);
}
}

namespace {

// ---- the verbs
// -----------------------------------------------------------------------------------

// A state as the column's type prints it, so that '01' and 1 are one state of an integer column.
char* canonical_state(Oid type, int32 typmod, char* state) {
    Oid input, parameter, output;
    bool is_varlena;
    getTypeInputInfo(type, &input, &parameter);
    getTypeOutputInfo(type, &output, &is_varlena);
    return OidOutputFunctionCall(output, OidInputFunctionCall(input, state, parameter, typmod));
}

char* state_argument(const Arguments& arguments, int n, const char* name, const Move& move) {
    return canonical_state(move.machine->type, move.machine->typmod, arguments.string(n, name));
}

Move open_move(const Arguments& arguments) {
    Move move = {};
    move.rel = open_table(arguments.relation(0), RowExclusiveLock);
    move.facts = facts_of(move.rel);
    const char* column =
        arguments.is_null(5) ? nullptr : NameStr(*DatumGetName(arguments.value(5)));
    move.machine = find_machine(move.rel, move.facts, column);
    move.key = key_argument(arguments, 1, move.rel, move.facts);
    move.from = state_argument(arguments, 2, "from_state", move);
    move.to = state_argument(arguments, 3, "to_state", move);
    move.changes = parse_changes(move.rel, move.facts, arguments.jsonb(4, "changes"),
                                 bms_make_singleton(move.machine->column));
    return move;
}

void write_transition(Statement* statement, const Move& move) {
    const char* column = quote_identifier(NameStr(move.machine->name));
    statement->add("UPDATE %s AS t SET ", qualified_name(move.rel));
    add_assignments(statement, move.facts, move.changes.columns);
    statement->add("%s%s = $%d", move.changes.count > 0 ? ", " : "", column,
                   statement->parameter(move.machine->type));
    statement->add(" WHERE ");
    add_key_condition(statement, move.facts);
    TypeCacheEntry* type = lookup_type_cache(move.machine->type, TYPECACHE_EQ_OPR);
    statement->add(" AND t.%s %s $%d", column, operator_text(type->eq_opr),
                   statement->parameter(move.machine->type));
}

Datum state_datum(const StateMachine* machine, char* state) {
    Oid input, parameter;
    getTypeInputInfo(machine->type, &input, &parameter);
    return OidInputFunctionCall(input, state, parameter, machine->typmod);
}

bool run_transition(const Move& move) {
    bool moved = false;
    with_spi([&] {
        SPIPlanPtr plan = plan_of({RelationGetRelid(move.rel), PlanKind::kTransition,
                                   move.changes.columns, move.machine->column},
                                  [&](Statement* statement) { write_transition(statement, move); });
        Parameters parameters(move.changes.count + move.facts->key_count + 2);
        add_changes(&parameters, move.changes);
        parameters.add(state_datum(move.machine, move.to));
        add_key(&parameters, move.facts, move.key);
        parameters.add(state_datum(move.machine, move.from));
        moved = run_plan(plan, parameters) > 0;
    });
    return moved;
}

const char* state_text(const StateMachine* machine, Datum value, bool is_null) {
    return is_null ? nullptr : OutputFunctionCall(const_cast<FmgrInfo*>(&machine->output), value);
}

// Reads where the row is now: {kStateChanged, state}, or {kNotFound}.
MoveResult look(const Move& move) {
    StoredRow row =
        read_row(move.rel, move.facts, move.key, bms_make_singleton(move.machine->column));
    if (!row.found)
        return {MoveOutcome::kNotFound, nullptr};
    bool is_null;
    Datum value = stored_value(row, move.machine->column, &is_null);
    return {MoveOutcome::kStateChanged, state_text(move.machine, value, is_null)};
}

MoveResult perform(const Move& move) {
    constexpr int kAttempts = 3;
    if (!is_allowed(move.machine, move.from, move.to)) {
        MoveResult found = look(move);
        if (found.outcome != MoveOutcome::kNotFound)
            found.outcome = MoveOutcome::kNotAllowed;
        return found;
    }
    for (int i = 0; i < kAttempts; i++) {
        if (run_transition(move))
            return {MoveOutcome::kTransitioned, move.to};
        MoveResult found = look(move);
        if (found.state == nullptr || strcmp(found.state, move.from) != 0)
            return found;
    }
    raise_suppressed(move.rel);
}

const char* outcome_name(MoveOutcome outcome) {
    switch (outcome) {
    case MoveOutcome::kTransitioned:
        return "transitioned";
    case MoveOutcome::kStateChanged:
        return "state_changed";
    case MoveOutcome::kNotAllowed:
        return "not_allowed";
    case MoveOutcome::kNotFound:
        return "not_found";
    }
    pg_unreachable();
}

void raise_state_changed(const Move& move, const char* state) {
    ereport(
        ERROR,
        (errcode(kStateChanged),
         errmsg("state of the row in table \"%s\" is \"%s\", not \"%s\"",
                RelationGetRelationName(move.rel), state != nullptr ? state : "null", move.from),
         errdetail_internal("%s", json_object({{"table", qualified_name(move.rel)},
                                               {"key", nullptr, key_to_text(move.facts, move.key)},
                                               {"column", NameStr(move.machine->name)},
                                               {"expected", move.from},
                                               {"state", state}})),
         errhint("Somebody else was faster: read the row and decide again.")));
}

// ---- the trigger
// ---------------------------------------------------------------------------------

Jsonb* targets_of(const StateMachine* machine, const char* from) {
    JsonbValue value;
    if (getKeyJsonValueFromContainer(&machine->transitions->root, from, strlen(from), &value) ==
        nullptr)
        return nullptr;
    return JsonbValueToJsonb(&value);
}

bool contains_state(Jsonb* array, const char* state) {
    JsonbValue wanted;
    wanted.type = jbvString;
    wanted.val.string.val = const_cast<char*>(state);
    wanted.val.string.len = strlen(state);
    return findJsonbValueFromContainer(&array->root, JB_FARRAY, &wanted) != nullptr;
}

bool is_declared(const StateMachine* machine, const char* state) {
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

bool is_initial(const StateMachine* machine, const char* state) {
    return machine->initial != nullptr ? contains_state(machine->initial, state)
                                       : is_declared(machine, state);
}

const char* allowed_json(const StateMachine* machine, const char* from) {
    Jsonb* allowed = from != nullptr ? targets_of(machine, from) : machine->initial;
    return allowed != nullptr ? JsonbToCString(nullptr, &allowed->root, VARSIZE(allowed)) : "[]";
}

void raise_not_allowed(Relation rel, const RelationFacts* facts, const StateMachine* machine,
                       const Key* key, const char* from, const char* to) {
    ereport(ERROR,
            (errcode(kTransitionNotAllowed),
             errmsg("transition of \"%s\" in table \"%s\" from \"%s\" to \"%s\" is not allowed",
                    NameStr(machine->name), RelationGetRelationName(rel),
                    from != nullptr ? from : "null", to != nullptr ? to : "null"),
             errdetail_internal(
                 "%s",
                 json_object({{"table", qualified_name(rel)},
                              {"key", nullptr, key != nullptr ? key_to_text(facts, *key) : nullptr},
                              {"column", NameStr(machine->name)},
                              {"from", from},
                              {"to", to},
                              {"allowed", nullptr, allowed_json(machine, from)}})),
             errhint("Its owner declares transitions with interlock.define_transitions.")));
}

const char* state_of(const StateMachine* machine, TupleDesc columns, HeapTuple row) {
    bool is_null;
    Datum value = heap_getattr(row, machine->column, columns, &is_null);
    return state_text(machine, value, is_null);
}

void check_insert(Relation rel, const RelationFacts* facts, const StateMachine* machine,
                  HeapTuple row) {
    if (machine->initial == nullptr)
        return;
    const char* state = state_of(machine, RelationGetDescr(rel), row);
    if (state != nullptr && contains_state(machine->initial, state))
        return;
    raise_not_allowed(rel, facts, machine, nullptr, nullptr, state);
}

void check_update(Relation rel, const RelationFacts* facts, const StateMachine* machine,
                  HeapTuple old_row, HeapTuple new_row) {
    TupleDesc columns = RelationGetDescr(rel);
    Form_pg_attribute attribute = TupleDescAttr(columns, machine->column - 1);
    bool old_null, new_null;
    Datum old_value = heap_getattr(old_row, machine->column, columns, &old_null);
    Datum new_value = heap_getattr(new_row, machine->column, columns, &new_null);
    if (old_null && new_null)
        return;
    if (!old_null && !new_null &&
        datum_image_eq(old_value, new_value, attribute->attbyval, attribute->attlen))
        return;
    const char* from = state_text(machine, old_value, old_null);
    const char* to = state_text(machine, new_value, new_null);
    if (from != nullptr && to != nullptr && strcmp(from, to) == 0)
        return;
    if (to != nullptr &&
        (from == nullptr ? is_initial(machine, to) : is_allowed(machine, from, to)))
        return;
    if (facts->key_count == 0)
        raise_not_allowed(rel, facts, machine, nullptr, from, to);
    Key key = key_of_tuple(facts, old_row);
    raise_not_allowed(rel, facts, machine, &key, from, to);
}

// ---- configuration
// -------------------------------------------------------------------------------

const StateMachine* usable_machine(Relation rel, const StateMachine* machine) {
    if (machine->column == InvalidAttrNumber)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("state column \"%s\" of table \"%s\" is gone", NameStr(machine->name),
                    RelationGetRelationName(rel)),
             errhint("Call interlock.drop_transitions, then interlock.define_transitions with the "
                     "column's present name.")));
    return machine;
}

const StateMachine* machine_of_trigger(Relation rel, const RelationFacts* facts,
                                       const Trigger* trigger) {
    const char* name = trigger->tgnargs > 0 ? trigger->tgargs[0] : "";
    for (int i = 0; i < facts->machine_count; i++)
        if (strcmp(NameStr(facts->machines[i].name), name) == 0)
            return usable_machine(rel, &facts->machines[i]);
    elog(ERROR, "transition trigger without configuration");
    pg_unreachable();
}

const StateMachine* find_machine(Relation rel, const RelationFacts* facts, const char* column) {
    if (column == nullptr && facts->machine_count > 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("table \"%s\" has transitions on several columns",
                               RelationGetRelationName(rel)),
                        errhint("Name the column with state_column.")));
    for (int i = 0; i < facts->machine_count; i++)
        if (column == nullptr || strcmp(NameStr(facts->machines[i].name), column) == 0)
            return usable_machine(rel, &facts->machines[i]);
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    column != nullptr
                        ? errmsg("column \"%s\" of table \"%s\" has no transitions", column,
                                 RelationGetRelationName(rel))
                        : errmsg("table \"%s\" has no transitions", RelationGetRelationName(rel)),
                    errhint("Its owner can call interlock.define_transitions.")));
}

void check_state_column(Relation rel, AttrNumber column) {
    Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), column - 1);
    Oid base = getBaseType(attribute->atttypid);
    bool fits = base == INT2OID || base == INT4OID || base == INT8OID ||
                TypeCategory(base) == TYPCATEGORY_STRING || get_typtype(base) == TYPTYPE_ENUM;
    if (!fits)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("column \"%s\" of table \"%s\" cannot be a state: its type is %s",
                               NameStr(attribute->attname), RelationGetRelationName(rel),
                               format_type_be(attribute->atttypid)),
                        errhint("Use a text, integer or enum column.")));
    if (attribute->attgenerated != '\0')
        ereport(ERROR, (errcode(ERRCODE_GENERATED_ALWAYS),
                        errmsg("generated column \"%s\" of table \"%s\" cannot be a state",
                               NameStr(attribute->attname), RelationGetRelationName(rel))));
}

[[noreturn]] void refuse_transitions() {
    ereport(
        ERROR,
        (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
         errmsg("transitions must be a jsonb object of arrays of states"),
         errhint(
             "For example {\"pending\": [\"paid\", \"cancelled\"], \"paid\": [\"shipped\"]}.")));
}

JsonbValue json_string(char* text) {
    JsonbValue value;
    value.type = jbvString;
    value.val.string.val = text;
    value.val.string.len = strlen(text);
    return value;
}

// States may be written as JSON strings or numbers.
char* state_of_json(Relation rel, AttrNumber column, const JsonbValue& value) {
    Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), column - 1);
    char* text;
    if (value.type == jbvString)
        text = pnstrdup(value.val.string.val, value.val.string.len);
    else if (value.type == jbvNumeric)
        text =
            DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(value.val.numeric)));
    else
        refuse_transitions();
    return canonical_state(attribute->atttypid, attribute->atttypmod, text);
}

// Reads the transitions and writes them again with every state as the column's type prints it; a
// state that the type does not know (no label of the enum, no number) is the type's own error.
char* canonical_transitions(Relation rel, AttrNumber column, Jsonb* transitions) {
    if (!JB_ROOT_IS_OBJECT(transitions))
        refuse_transitions();
    JsonbParseState* state = nullptr;
    pushJsonbValue(&state, WJB_BEGIN_OBJECT, nullptr);
    JsonbIterator* iterator = JsonbIteratorInit(&transitions->root);
    JsonbValue value;
    JsonbValue* result = nullptr;
    bool in_array = false;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE;) {
        switch (token) {
        case WJB_KEY: {
            JsonbValue from = json_string(state_of_json(rel, column, value));
            pushJsonbValue(&state, WJB_KEY, &from);
            break;
        }
        case WJB_BEGIN_ARRAY:
        case WJB_END_ARRAY:
            if (in_array == (token == WJB_BEGIN_ARRAY))
                refuse_transitions();
            in_array = !in_array;
            pushJsonbValue(&state, token, nullptr);
            break;
        case WJB_ELEM: {
            JsonbValue to = json_string(state_of_json(rel, column, value));
            pushJsonbValue(&state, WJB_ELEM, &to);
            break;
        }
        case WJB_VALUE:
            refuse_transitions();
        case WJB_BEGIN_OBJECT:
            if (in_array)
                refuse_transitions();
            break;
        case WJB_END_OBJECT:
            result = pushJsonbValue(&state, WJB_END_OBJECT, nullptr);
            break;
        default:
            break;
        }
    }
    Jsonb* json = JsonbValueToJsonb(result);
    return JsonbToCString(nullptr, &json->root, VARSIZE(json));
}

// The initial states as a JSON array, or an empty string when every state is.
char* canonical_initial(Relation rel, AttrNumber column, const Arguments& arguments, int n) {
    if (arguments.is_null(n))
        return pstrdup("");
    Datum* states;
    bool* nulls;
    int count;
    deconstruct_array(DatumGetArrayTypeP(arguments.value(n)), TEXTOID, -1, false, TYPALIGN_INT,
                      &states, &nulls, &count);
    Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), column - 1);
    JsonbParseState* state = nullptr;
    pushJsonbValue(&state, WJB_BEGIN_ARRAY, nullptr);
    for (int i = 0; i < count; i++) {
        if (nulls[i])
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                            errmsg("argument \"initial\" must not contain nulls")));
        JsonbValue value = json_string(canonical_state(attribute->atttypid, attribute->atttypmod,
                                                       TextDatumGetCString(states[i])));
        pushJsonbValue(&state, WJB_ELEM, &value);
    }
    Jsonb* json = JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_ARRAY, nullptr));
    return JsonbToCString(nullptr, &json->root, VARSIZE(json));
}

// One trigger for each state column, named after it.
char* trigger_name(const char* column) {
    return pstrdup(quote_identifier(makeObjectName(kTriggerPrefix, column, nullptr)));
}

Jsonb* parse_argument(const Trigger* trigger, int n) {
    if (n >= trigger->tgnargs || trigger->tgargs[n][0] == '\0')
        return nullptr;
    return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(trigger->tgargs[n])));
}

} // namespace

namespace interlock {

void load_state_machine(TupleDesc columns, const Trigger* trigger, StateMachine* machine) {
    namestrcpy(&machine->name, trigger->tgnargs > 0 ? trigger->tgargs[0] : "");
    machine->enabled = trigger->tgenabled;
    machine->transitions = parse_argument(trigger, 1);
    machine->initial = parse_argument(trigger, 2);
    machine->column = find_attribute(columns, NameStr(machine->name));
    if (machine->transitions == nullptr)
        machine->column = InvalidAttrNumber;
    if (machine->column == InvalidAttrNumber)
        return;
    machine->type = TupleDescAttr(columns, machine->column - 1)->atttypid;
    machine->typmod = TupleDescAttr(columns, machine->column - 1)->atttypmod;
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(machine->type, &output, &is_varlena);
    fmgr_info_cxt(output, &machine->output, CurrentMemoryContext);
}

bool is_allowed(const StateMachine* machine, const char* from, const char* to) {
    Jsonb* targets = targets_of(machine, from);
    return targets != nullptr && contains_state(targets, to);
}

} // namespace interlock

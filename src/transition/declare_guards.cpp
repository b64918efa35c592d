// The argument "guards" of define_transitions.

#include "server/arguments.h"
#include "server/error.h"
#include "server/json_builder.h"
#include "server/named_function.h"
#include "transition/guard.h"
#include "transition/transition.h"
#include "transition/unknown_state.h"

namespace interlock::transition {

constexpr const char* kExample =
    "For example {\"open\": {\"claimed\": \"may_claim\"}}, a function that takes the old and the "
    "new row.";

namespace {

// The functions of the condition, and what the JSON argument is made of.
struct Declared {
    Relation rel;
    const StateMachine* machine;
    List* functions; // each once
    JsonBuilder json;
};

} // namespace

[[noreturn]] static void refuse_shape() {
    refuse_argument("guards", "must be a jsonb object of objects of functions", kExample);
}

static char* state_of(const Declared& declared, const JsonbValue& key) {
    return canonical_state(declared.rel, declared.machine->type, declared.machine->typmod,
                           pnstrdup(key.val.string.val, key.val.string.len));
}

[[noreturn]] static void refuse_function(const Declared& declared, Oid function) {
    const char* table = quote_identifier(RelationGetRelationName(declared.rel));
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("function %s cannot be a guard of table \"%s\"",
                           format_procedure(function), RelationGetRelationName(declared.rel)),
                    errhint("A guard takes the old and the new row (%s, %s), and returns boolean, "
                            "or a text that says why not.",
                            table, table)));
}

// May be a function of another owner: the owner of the table chooses it, as a trigger function.
static Oid read_function(const Declared& declared, const JsonbValue& value) {
    if (value.type != jbvString)
        refuse_shape();
    char* text = pnstrdup(value.val.string.val, value.val.string.len);
    Oid function = named_guard(declared.rel, text);
    if (!SearchSysCacheExists1(PROCOID, ObjectIdGetDatum(function)))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                        errmsg("function \"%s\" does not exist", text), errhint("%s", kExample)));
    Guard guard;
    if (!describe_guard(function, &guard) || guard.row_type != declared.rel->rd_rel->reltype)
        refuse_function(declared, function);
    AclResult allowed = check_function_privilege(function, GetUserId());
    if (allowed != ACLCHECK_OK)
        aclcheck_error(allowed, OBJECT_FUNCTION, get_func_name(function));
    return function;
}

static int number_of(Declared* declared, Oid function) {
    declared->functions = list_append_unique_oid(declared->functions, function);
    for (int i = 0; i < list_length(declared->functions); i++)
        if (list_nth_oid(declared->functions, i) == function)
            return i;
    pg_unreachable();
}

static void push_string(Declared* declared, char* text) {
    JsonbValue key;
    key.type = jbvString;
    key.val.string.val = text;
    key.val.string.len = static_cast<int>(strlen(text));
    declared->json.push(WJB_KEY, &key);
}

static void push_number(Declared* declared, int number) {
    JsonbValue value;
    value.type = jbvNumeric;
    value.val.numeric = int64_to_numeric(number);
    declared->json.push(WJB_VALUE, &value);
}

static void require_declared(const Declared& declared, const char* from, const char* to) {
    if (may_move(declared.machine, from, to))
        return;
    require_known_state(declared.rel, declared.machine, "guards", from);
    require_known_state(declared.rel, declared.machine, "guards", to);
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("the transition from \"%s\" to \"%s\" has a guard and is not declared",
                           from, to),
                    errhint("Name it in transitions as well.")));
}

// The guards of the transitions from one state.
static void declare_targets(Declared* declared, const char* from, JsonbContainer* targets) {
    declared->json.push(WJB_BEGIN_OBJECT);
    JsonbIterator* iterator = JsonbIteratorInit(targets);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE;) {
        if (token == WJB_KEY) {
            char* to = state_of(*declared, value);
            require_declared(*declared, from, to);
            push_string(declared, to);
        } else if (token == WJB_VALUE) {
            push_number(declared, number_of(declared, read_function(*declared, value)));
        }
    }
    declared->json.push(WJB_END_OBJECT);
}

static Jsonb* declare_all(Declared* declared, Jsonb* guards) {
    declared->json.push(WJB_BEGIN_OBJECT);
    JsonbIterator* iterator = JsonbIteratorInit(&guards->root);
    JsonbValue value;
    const char* from = nullptr;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE;) {
        if (token == WJB_KEY) {
            char* state = state_of(*declared, value);
            push_string(declared, state);
            from = state;
        } else if (token == WJB_VALUE) {
            if (value.type != jbvBinary || !JsonContainerIsObject(value.val.binary.data))
                refuse_shape();
            declare_targets(declared, from, value.val.binary.data);
        }
    }
    return declared->json.finish(WJB_END_OBJECT);
}

// Members that were one state in two spellings have become one.
static int count_members(Jsonb* json) {
    int count = 0;
    JsonbIterator* iterator = JsonbIteratorInit(&json->root);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE;)
        count += token == WJB_KEY;
    return count;
}

static const char* condition_of(const List* functions) {
    if (functions == NIL)
        return "";
    StringInfoData text;
    initStringInfo(&text);
    appendStringInfoString(&text, "WHEN (true");
    ListCell* cell;
    foreach (cell, functions) {
        Oid function = lfirst_oid(cell);
        appendStringInfo(
            &text, " OR %s(OLD.*, OLD.*) IS NULL",
            quote_qualified_identifier(get_namespace_name(get_func_namespace(function)),
                                       get_func_name(function)));
    }
    appendStringInfoString(&text, ") ");
    return text.data;
}

Oid named_guard(Relation rel, const char* name) {
    Oid row = rel->rd_rel->reltype;
    return named_function(name, {row, row}, kExample);
}

StateMachine machine_to_declare(Relation rel, AttrNumber column, Jsonb* transitions) {
    Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), column - 1);
    StateMachine machine = {};
    machine.name = attribute->attname;
    machine.column = column;
    machine.type = attribute->atttypid;
    machine.base_type = getBaseType(machine.type);
    machine.typmod = attribute->atttypmod;
    machine.transitions = transitions;
    return machine;
}

GuardDeclaration declare_guards(Relation rel, const StateMachine& machine, Jsonb* guards) {
    if (!JB_ROOT_IS_OBJECT(guards))
        refuse_shape();
    Declared declared = {rel, &machine, NIL, {}};
    Jsonb* json = declare_all(&declared, guards);
    if (count_members(json) != count_members(guards))
        refuse_argument("guards", "must not name a transition twice",
                        "Two spellings of one value, as \"01\" and \"1\" of an integer, are one "
                        "state.");
    if (declared.functions == NIL)
        return {"", ""};
    return {declaration_text("guards", json), condition_of(declared.functions)};
}

} // namespace interlock::transition

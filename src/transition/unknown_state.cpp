#include "transition/unknown_state.h"

#include "server/nearest.h"
#include "server/scope.h"
#include "table/own_table.h"
#include "transition/transition.h"

namespace interlock::transition {

// Some of the states are enough for a hint.
constexpr int kStatesShown = 20;

static char* in_quotes(const List* states) {
    StringInfoData text;
    initStringInfo(&text);
    for (int i = 0; i < Min(list_length(states), kStatesShown); i++)
        appendStringInfo(&text, "%s\"%s\"", i > 0 ? ", " : "",
                         static_cast<const char*>(list_nth(states, i)));
    if (list_length(states) > kStatesShown)
        appendStringInfoString(&text, ", ...");
    return text.data;
}

// Calls visit(state) for each state that the machine names, as often as it names it, until visit
// returns false.
template <typename Visit>
static void each_state(const StateMachine* machine, Visit&& visit) {
    for (Jsonb* json : {machine->transitions, machine->initial}) {
        if (json == nullptr)
            continue;
        JsonbIterator* iterator = JsonbIteratorInit(&json->root);
        JsonbValue value;
        for (JsonbIteratorToken token;
             (token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE;) {
            CHECK_FOR_INTERRUPTS();
            if ((token == WJB_KEY || token == WJB_ELEM) &&
                !visit(pnstrdup(value.val.string.val, value.val.string.len)))
                return;
        }
    }
}

static bool contains(const List* states, const char* state) {
    ListCell* cell;
    foreach (cell, states)
        if (strcmp(static_cast<const char*>(lfirst(cell)), state) == 0)
            return true;
    return false;
}

// The first ones, each once.
static List* states_to_show(const StateMachine* machine) {
    List* states = NIL;
    each_state(machine, [&](char* state) {
        if (!contains(states, state))
            states = lappend(states, state);
        return list_length(states) <= kStatesShown;
    });
    return states;
}

// --- What the type does not have -----------------------------------------------------------------

// Whether the text of a state can be one of that type, as far as that shows without its input
// function, which raises. Only an enum loses values while it stays the same type.
static bool may_be_value(Oid type, const char* state) {
    size_t length = strlen(state);
    switch (type) {
    case BOOLOID:
        return strcmp(state, "true") == 0 || strcmp(state, "false") == 0;
    case INT2OID:
    case INT4OID:
    case INT8OID:
        return length > 0 && strspn(state, "-0123456789") == length;
    case NUMERICOID:
        return length > 0 && (strspn(state, "-.0123456789") == length ||
                              strpbrk(state, "Nf") != nullptr); // NaN, Infinity
    case UUIDOID:
        return length == 36 && strspn(state, "-0123456789abcdef") == length;
    default:
        return get_typtype(type) != TYPTYPE_ENUM ||
               (length < NAMEDATALEN &&
                SearchSysCacheExists2(ENUMTYPOIDNAME, ObjectIdGetDatum(type),
                                      CStringGetDatum(state)));
    }
}

static List* lost_states(const StateMachine* machine) {
    List* lost = NIL;
    each_state(machine, [&](char* state) {
        if (!may_be_value(machine->base_type, state) && !contains(lost, state))
            lost = lappend(lost, state);
        return list_length(lost) <= kStatesShown;
    });
    return lost;
}

// The labels of an enum, in their order.
static List* labels_of(Oid type) {
    List* labels = NIL;
    Relation catalog = table_open(EnumRelationId, AccessShareLock);
    Relation index = index_open(EnumTypIdSortOrderIndexId, AccessShareLock);
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_enum_enumtypid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(type));
    SysScanDesc scan = systable_beginscan_ordered(catalog, index, nullptr, 1, &key);
    HeapTuple row;
    while (HeapTupleIsValid(row = systable_getnext_ordered(scan, ForwardScanDirection)))
        labels = lappend(
            labels, pstrdup(NameStr(reinterpret_cast<Form_pg_enum>(GETSTRUCT(row))->enumlabel)));
    systable_endscan_ordered(scan);
    index_close(index, AccessShareLock);
    table_close(catalog, AccessShareLock);
    return labels;
}

const char* way_back_of_states(Relation rel, const StateMachine* machine) {
    List* lost = lost_states(machine);
    if (lost == NIL)
        return nullptr;
    return psprintf(
        "The transitions of the column name states that its type %s does not have: %s. "
        "The table's owner defines them again with interlock.define_transitions; "
        "SELECT interlock.configuration(%s) shows them.",
        format_type_be(machine->type), in_quotes(lost), quote_literal_cstr(qualified_name(rel)));
}

static const char* nearest_in_words(const StateMachine* machine, const char* state) {
    Nearest nearest(state);
    each_state(machine, [&](char* known) {
        nearest.offer(known);
        return true;
    });
    return nearest.in_words();
}

void hint_at_states(Relation rel, const StateMachine* machine, const char* state) {
    const char* way_back = way_back_of_states(rel, machine);
    if (way_back != nullptr)
        errhint("%s", way_back);
    else
        errhint("%sDeclared states of column \"%s\": %s.", nearest_in_words(machine, state),
                NameStr(machine->name), in_quotes(states_to_show(machine)));
}

void hint_at_type(Oid type, const char* state) {
    Oid base = getBaseType(type);
    if (get_typtype(base) != TYPTYPE_ENUM) {
        errhint("States of the column have type %s.", format_type_be(type));
        return;
    }
    List* labels = labels_of(base);
    Nearest nearest(state);
    ListCell* cell;
    foreach (cell, labels)
        nearest.offer(static_cast<const char*>(lfirst(cell)));
    errhint("%sLabels of type %s: %s.", nearest.in_words(), format_type_be(type),
            in_quotes(labels));
}

void require_known_state(Relation rel, const StateMachine* machine, const char* argument,
                         const char* state) {
    if (knows_state(machine, state))
        return;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("argument \"%s\": no transition of column \"%s\" of table \"%s\" names "
                           "the state \"%s\"",
                           argument, NameStr(machine->name), RelationGetRelationName(rel), state),
                    (hint_at_states(rel, machine, state), 0)));
}

} // namespace interlock::transition

// States as they are declared, and as the trigger's arguments have them.

#include "server/arguments.h"
#include "server/json_builder.h"
#include "table/facet.h"
#include "table/key.h"
#include "table/settings_json.h"
#include "transition/define.h"
#include "transition/transition.h"

namespace interlock::transition {

void check_state_column(Relation rel, AttrNumber column) {
    Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), column - 1);
    if (!can_be_state(attribute->atttypid))
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("column \"%s\" of table \"%s\" cannot be a state: its type is %s",
                               NameStr(attribute->attname), RelationGetRelationName(rel),
                               format_type_be(attribute->atttypid)),
                        errhint("Use a text, integer, numeric, boolean, uuid or enum column.")));
    require_use(rel, table_info(rel), column, ColumnUse::kState);
    if (attribute->attgenerated != '\0')
        ereport(ERROR, (errcode(ERRCODE_GENERATED_ALWAYS),
                        errmsg("generated column \"%s\" of table \"%s\" cannot be a state",
                               NameStr(attribute->attname), RelationGetRelationName(rel))));
}

[[noreturn]] static void refuse_transitions() {
    refuse_argument(
        "transitions", "must be a jsonb object of arrays of states",
        "For example {\"pending\": [\"paid\", \"cancelled\"], \"paid\": [\"shipped\"]}.");
}

[[noreturn]] static void refuse_two_spellings(Relation rel, AttrNumber column) {
    Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), column - 1);
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("transitions name a state of column \"%s\" twice", NameStr(attribute->attname)),
             errhint("Two spellings of one value of type %s are one state, as \"01\" and \"1\" are "
                     "one integer: declare its transitions once.",
                     format_type_be(attribute->atttypid))));
}

// States may be written as JSON strings, numbers, or for a boolean column booleans.
static char* state_of_json(Relation rel, AttrNumber column, const JsonbValue& value) {
    Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), column - 1);
    bool is_state = value.type == jbvString || value.type == jbvNumeric ||
                    (value.type == jbvBool && getBaseType(attribute->atttypid) == BOOLOID);
    if (!is_state)
        refuse_transitions();
    return canonical_state(rel, attribute->atttypid, attribute->atttypmod, scalar_text(value));
}

// The states that may follow one state, written as state_text() prints them.
static JsonbValue* canonical_targets(Relation rel, AttrNumber column, const JsonbValue& targets) {
    if (targets.type != jbvBinary || !JsonContainerIsArray(targets.val.binary.data))
        refuse_transitions();
    JsonBuilder builder;
    builder.push(WJB_BEGIN_ARRAY);
    JsonbIterator* iterator = JsonbIteratorInit(targets.val.binary.data);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE;) {
        if (token != WJB_ELEM)
            continue;
        JsonbValue to = json_text(state_of_json(rel, column, value));
        builder.push(WJB_ELEM, &to);
    }
    builder.push(WJB_END_ARRAY);
    return builder.value();
}

Jsonb* canonical_transitions(Relation rel, AttrNumber column, Jsonb* transitions) {
    if (!JB_ROOT_IS_OBJECT(transitions))
        refuse_transitions();
    JsonBuilder builder;
    builder.push(WJB_BEGIN_OBJECT);
    JsonbIterator* iterator = JsonbIteratorInit(&transitions->root);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE;) {
        if (token == WJB_KEY) {
            JsonbValue from = json_text(state_of_json(rel, column, value));
            builder.push(WJB_KEY, &from);
        } else if (token == WJB_VALUE) {
            builder.push(WJB_VALUE, canonical_targets(rel, column, value));
        }
    }
    Jsonb* json = builder.finish(WJB_END_OBJECT);
    if (JB_ROOT_COUNT(json) != JB_ROOT_COUNT(transitions))
        refuse_two_spellings(rel, column);
    return json;
}

Jsonb* canonical_states(Relation rel, AttrNumber column, const List* states) {
    Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(rel), column - 1);
    JsonBuilder builder;
    builder.push(WJB_BEGIN_ARRAY);
    ListCell* cell;
    foreach (cell, states) {
        JsonbValue value = json_text(canonical_state(rel, attribute->atttypid, attribute->atttypmod,
                                                     static_cast<char*>(lfirst(cell))));
        builder.push(WJB_ELEM, &value);
    }
    return builder.finish(WJB_END_ARRAY);
}

} // namespace interlock::transition

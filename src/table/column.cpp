#include "table/column.h"

#include "server/nearest.h"

namespace interlock::inline table {

// As in SQL, where names are quoted to keep their letters as they are.
static bool is_quoted(std::string_view name) {
    return name.size() > 1 && name.front() == '"' && name.back() == '"';
}

int hint_column_name(std::string_view name) {
    return is_quoted(name)
               ? errhint("Give the name without quotes.")
               : errhint("Column names are matched exactly, with upper and lower case.");
}

int hint_nearest_column(TupleDesc columns, std::string_view name) {
    Nearest nearest(name);
    for (int i = 0; i < columns->natts; i++)
        if (!TupleDescAttr(columns, i)->attisdropped)
            nearest.offer(NameStr(TupleDescAttr(columns, i)->attname));
    return nearest.name() != nullptr ? errhint("Perhaps you meant column \"%s\".", nearest.name())
                                     : hint_column_name(name);
}

AttrNumber column_number(Relation rel, const char* name) {
    AttrNumber attnum = get_attnum(RelationGetRelid(rel), name);
    if (attnum <= 0)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("column \"%s\" of table \"%s\" does not exist", name,
                               RelationGetRelationName(rel)),
                        hint_column_name(name)));
    return attnum;
}

void require_column_name(Relation rel, const char* name) {
    if (name[0] == '\0' || SystemAttributeByName(name) != nullptr)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("table \"%s\" cannot have a column \"%s\"",
                               RelationGetRelationName(rel), name),
                        errhint("System columns cannot be used. Give the name of a column, or of "
                                "one to add.")));
    if (is_quoted(name) && get_attnum(RelationGetRelid(rel), name) == InvalidAttrNumber)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("column \"%s\" of table \"%s\" does not exist", name,
                               RelationGetRelationName(rel)),
                        hint_column_name(name)));
}

AttrNumber find_attribute(TupleDesc columns, std::string_view name) {
    for (int i = 0; i < columns->natts; i++) {
        Form_pg_attribute attribute = TupleDescAttr(columns, i);
        if (!attribute->attisdropped && name == NameStr(attribute->attname))
            return i + 1;
    }
    return InvalidAttrNumber;
}

char* column_names_json(TupleDesc columns, const Bitmapset* numbers) {
    StringInfoData json;
    initStringInfo(&json);
    for (int column = -1; (column = bms_next_member(numbers, column)) >= 0;) {
        appendStringInfoString(&json, json.len == 0 ? "[" : ", ");
        escape_json(&json, NameStr(TupleDescAttr(columns, column - 1)->attname));
    }
    appendStringInfoChar(&json, ']');
    return json.data;
}

bool prints_alike(Oid type) {
    switch (type) {
    case INT2OID:
    case INT4OID:
    case INT8OID:
    case NUMERICOID:
    case BOOLOID:
    case UUIDOID:
    case DATEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
        return true;
    default:
        return TypeCategory(type) == TYPCATEGORY_STRING || get_typtype(type) == TYPTYPE_ENUM;
    }
}

bool is_stored(Form_pg_attribute attribute) {
    return attribute->attgenerated == '\0' || attribute->attgenerated == ATTRIBUTE_GENERATED_STORED;
}

Bitmapset* columns_in(TupleDesc columns, const char* expression) {
    Bitmapset* attributes = nullptr; // as pull_varattnos() numbers them
    pull_varattnos(static_cast<Node*>(stringToNode(expression)), 1, &attributes);
    bool is_whole_row = bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, attributes);
    Bitmapset* found = nullptr;
    for (int column = 1; column <= columns->natts; column++)
        if (is_whole_row || bms_is_member(column - FirstLowInvalidHeapAttributeNumber, attributes))
            found = bms_add_member(found, column);
    return found;
}

Bitmapset* sources_of(TupleDesc columns, const Bitmapset* generated) {
    Bitmapset* sources = nullptr;
    const TupleConstr* constraints = columns->constr;
    for (int i = 0; constraints != nullptr && i < constraints->num_defval; i++) {
        const AttrDefault& value = constraints->defval[i];
        if (bms_is_member(value.adnum, generated) &&
            TupleDescAttr(columns, value.adnum - 1)->attgenerated != '\0')
            sources = bms_join(sources, columns_in(columns, value.adbin));
    }
    return sources;
}

} // namespace interlock::inline table

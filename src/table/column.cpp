#include "table/column.h"

namespace interlock {

AttrNumber column_number(Relation rel, const char* name) {
    AttrNumber attnum = get_attnum(RelationGetRelid(rel), name);
    if (attnum <= 0)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("column \"%s\" of table \"%s\" does not exist", name,
                               RelationGetRelationName(rel)),
                        errhint("Column names are matched exactly, with upper and lower case.")));
    return attnum;
}

void require_column_name(Relation rel, const char* name) {
    if (name[0] == '\0' || SystemAttributeByName(name) != nullptr)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("table \"%s\" cannot have a column \"%s\"",
                               RelationGetRelationName(rel), name),
                        errhint("Give the name of a column, or of one to add.")));
}

AttrNumber find_attribute(TupleDesc columns, std::string_view name) {
    for (int i = 0; i < columns->natts; i++) {
        Form_pg_attribute attribute = TupleDescAttr(columns, i);
        if (!attribute->attisdropped && name == NameStr(attribute->attname))
            return i + 1;
    }
    return InvalidAttrNumber;
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

} // namespace interlock

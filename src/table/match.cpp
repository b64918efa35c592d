#include "table/match.h"

#include "server/arguments.h"
#include "table/populate.h"

namespace interlock::inline table {

// The largest member that PlanShape::columns can have; columns are numbered from 1.
constexpr int kLastMember = MaxHeapAttributeNumber;

static Oid equality_of(const TableInfo* info, AttrNumber column) {
    return lookup_type_cache(TupleDescAttr(info->columns, column - 1)->atttypid, TYPECACHE_EQ_OPR)
        ->eq_opr;
}

static AttrNumber matched_column(Relation rel, const TableInfo* info, const JsonbValue& member) {
    const char* name = pnstrdup(member.val.string.val, member.val.string.len);
    AttrNumber column = find_attribute(info->columns, name);
    if (column == InvalidAttrNumber)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                        errmsg("column \"%s\" of table \"%s\" does not exist", name,
                               RelationGetRelationName(rel)),
                        hint_nearest_column(info->columns, name)));
    if (!OidIsValid(equality_of(info, column)))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                        errmsg("column \"%s\" of table \"%s\" cannot be compared: type %s has no "
                               "equality operator",
                               name, RelationGetRelationName(rel),
                               format_type_be(TupleDescAttr(info->columns, column - 1)->atttypid)),
                        errhint("Leave it out of argument \"match\".")));
    return column;
}

static void read_members(Match* match, Relation rel, const TableInfo* info, Jsonb* json) {
    JsonbIterator* iterator = JsonbIteratorInit(&json->root);
    JsonbValue value;
    AttrNumber column = InvalidAttrNumber;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE;) {
        if (token == WJB_KEY)
            column = matched_column(rel, info, value);
        else if (token == WJB_VALUE && value.type == jbvNull)
            match->null = bms_add_member(match->null, column);
        else if (token == WJB_VALUE)
            match->equal = bms_add_member(match->equal, column);
    }
}

Match match_argument(const Arguments& arguments, int n, Relation rel, const TableInfo* info) {
    Jsonb* json = arguments.jsonb(n, "match");
    if (!JB_ROOT_IS_OBJECT(json))
        refuse_argument("match", "must be a JSON object", "Give {\"column\": value, ...}.");
    Match match = {};
    if (JB_ROOT_COUNT(json) == 0)
        return match;
    read_members(&match, rel, info, json);
    if (match.equal != nullptr)
        match.values = row_from_jsonb(info, json);
    return match;
}

static bool are_equal(const TableInfo* info, AttrNumber column, Datum left, Datum right) {
    Form_pg_attribute attribute = TupleDescAttr(info->columns, column - 1);
    TypeCacheEntry* type = lookup_type_cache(attribute->atttypid, TYPECACHE_EQ_OPR_FINFO);
    Oid function = type->eq_opr_finfo.fn_oid;
    AclResult allowed = check_function_privilege(function, GetUserId());
    if (allowed != ACLCHECK_OK)
        aclcheck_error(allowed, OBJECT_FUNCTION, get_func_name(function));
    return DatumGetBool(
        FunctionCall2Coll(&type->eq_opr_finfo, attribute->attcollation, left, right));
}

Bitmapset* differences(const TableInfo* info, const Match& match, const RowValues& row) {
    Bitmapset* result = nullptr;
    for (int column = -1; (column = bms_next_member(match.null, column)) >= 0;)
        if (!row[column].isnull)
            result = bms_add_member(result, column);
    for (int column = -1; (column = bms_next_member(match.equal, column)) >= 0;) {
        bool is_null;
        Datum value = heap_getattr(match.values, column, info->columns, &is_null);
        if (is_null || row[column].isnull || !are_equal(info, column, row[column].value, value))
            result = bms_add_member(result, column);
    }
    return result;
}

// Of a domain the operators of its base type compare.
void add_match(Statement* statement, const TableInfo* info, const Match& match) {
    for (int column = -1; (column = bms_next_member(match.equal, column)) >= 0;) {
        Oid type = TupleDescAttr(info->columns, column - 1)->atttypid;
        statement->add(" AND t.%s%s %s $%d", quote_identifier(column_name(info, column)),
                       enum_cast(type), operator_text(equality_of(info, column)),
                       statement->parameter(getBaseType(type)));
    }
    for (int column = -1; (column = bms_next_member(match.null, column)) >= 0;)
        statement->add(" AND t.%s IS NULL", quote_identifier(column_name(info, column)));
}

void add_match_values(Parameters* parameters, const TableInfo* info, const Match& match) {
    for (int column = -1; (column = bms_next_member(match.equal, column)) >= 0;) {
        bool is_null;
        Datum value = heap_getattr(match.values, column, info->columns, &is_null);
        parameters->add(value, is_null);
    }
}

const Bitmapset* plan_columns(Relation rel, const TableInfo* info, const Match& match) {
    if (match.null == nullptr)
        return match.equal;
    if (info->columns->natts > kLastMember / 2)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("table \"%s\" has too many columns to match a null",
                               RelationGetRelationName(rel)),
                        errhint("At most %d.", kLastMember / 2)));
    Bitmapset* result = bms_copy(match.equal);
    for (int column = -1; (column = bms_next_member(match.null, column)) >= 0;)
        result = bms_add_member(result, kLastMember + 1 - column);
    return result;
}

} // namespace interlock::inline table

#include "table/populate.h"

#include "server/error.h"
#include "server/subtransaction.h"
#include "table/row_values.h"

namespace interlock::inline table {

static HeapTuple populate_row(FmgrInfo* populate, TupleDesc columns, Jsonb* json) {
    auto* values = static_cast<Datum*>(palloc0(sizeof(Datum) * columns->natts));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * columns->natts));
    memset(nulls, true, columns->natts);
    HeapTuple empty = heap_form_tuple(columns, values, nulls);
    Datum record =
        FunctionCall2(populate, heap_copy_tuple_as_datum(empty, columns), JsonbPGetDatum(json));
    auto* tuple = static_cast<HeapTuple>(palloc(sizeof(HeapTupleData)));
    *tuple = row_in(DatumGetHeapTupleHeader(record));
    return tuple;
}

// Whether the text may be JSON that jsonb does not take.
static bool may_be_no_jsonb(const char* json) {
    for (const char* at = json; *at != '\0'; at++)
        if ((at[0] == '\\' && at[1] == 'u') ||
            (at[0] >= '0' && at[0] <= '9' && (at[1] == 'e' || at[1] == 'E')))
            return true;
    return false;
}

// False when the text is no value of the input function's type.
static bool reads(PGFunction input, const char* text, Datum* value) {
    ErrorData* error = attempt([&] { *value = DirectFunctionCall1(input, CStringGetDatum(text)); });
    if (error != nullptr && !is_of_input(error->sqlerrcode))
        ReThrowError(error);
    return error == nullptr;
}

// The value of a column of type json or jsonb that jsonb_populate_record reads as another one.
static bool read_json(Form_pg_attribute attribute, const JsonbValue& member, Datum* value) {
    if (member.type == jbvNull && attribute->attnotnull) {
        *value = DirectFunctionCall1(attribute->atttypid == JSONOID ? json_in : jsonb_in,
                                     CStringGetDatum("null"));
        return true;
    }
    if (member.type != jbvString || attribute->atttypid != JSONOID)
        return false;
    char* text = pnstrdup(member.val.string.val, member.val.string.len);
    return may_be_no_jsonb(text) && reads(json_in, text, value) && jsonb_of_text(text) == nullptr;
}

static HeapTuple with_json(TupleDesc columns, Jsonb* json, HeapTuple row) {
    for (int i = 0; i < columns->natts; i++) {
        Form_pg_attribute attribute = TupleDescAttr(columns, i);
        if (attribute->atttypid != JSONOID && attribute->atttypid != JSONBOID)
            continue;
        const char* name = NameStr(attribute->attname);
        JsonbValue member;
        Datum value;
        int column = i + 1;
        bool is_null = false;
        if (getKeyJsonValueFromContainer(&json->root, name, strlen(name), &member) != nullptr &&
            read_json(attribute, member, &value))
            row = heap_modify_tuple_by_cols(row, columns, 1, &column, &value, &is_null);
    }
    return row;
}

Jsonb* jsonb_of_text(char* json) {
    Datum value = 0;
    if (!may_be_no_jsonb(json))
        value = DirectFunctionCall1(jsonb_in, CStringGetDatum(json));
    else if (!reads(jsonb_in, json, &value))
        return nullptr;
    return DatumGetJsonbP(value);
}

HeapTuple row_from_jsonb(const TableInfo* info, Jsonb* json) {
    FmgrInfo copy;
    HeapTuple row = with_json(info->columns, json,
                              populate_row(for_call(info->populate, &copy), info->columns, json));
    row->t_tableOid = info->relid;
    return row;
}

HeapTuple record_from_jsonb(TupleDesc columns, Jsonb* json) {
    FmgrInfo populate;
    prepare_populate(&populate, RECORDOID, CurrentMemoryContext);
    return populate_row(&populate, BlessTupleDesc(columns), json);
}

void prepare_populate(FmgrInfo* populate, Oid row_type, MemoryContext memory) {
    Const* row = makeNullConst(row_type, -1, InvalidOid);
    Const* json = makeNullConst(JSONBOID, -1, InvalidOid);
    FuncExpr* call = makeFuncExpr(F_JSONB_POPULATE_RECORD, row_type, list_make2(row, json),
                                  InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
    fmgr_info_cxt(F_JSONB_POPULATE_RECORD, populate, memory);
    fmgr_info_set_expr(reinterpret_cast<Node*>(call), populate);
}

} // namespace interlock::inline table

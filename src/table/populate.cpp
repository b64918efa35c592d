#include "table/populate.h"

namespace interlock {

namespace {

HeapTuple populate_row(FmgrInfo* populate, TupleDesc columns, Jsonb* json) {
    auto* values = static_cast<Datum*>(palloc0(sizeof(Datum) * columns->natts));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * columns->natts));
    memset(nulls, true, columns->natts);
    HeapTuple empty = heap_form_tuple(columns, values, nulls);
    Datum record =
        FunctionCall2(populate, heap_copy_tuple_as_datum(empty, columns), JsonbPGetDatum(json));
    HeapTupleHeader header = DatumGetHeapTupleHeader(record);
    auto* tuple = static_cast<HeapTuple>(palloc0(sizeof(HeapTupleData)));
    tuple->t_len = HeapTupleHeaderGetDatumLength(header);
    tuple->t_data = header;
    return tuple;
}

} // namespace

HeapTuple row_from_jsonb(const TableInfo* info, Jsonb* json) {
    FmgrInfo copy;
    HeapTuple row = populate_row(for_call(info->populate, &copy), info->columns, json);
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

} // namespace interlock

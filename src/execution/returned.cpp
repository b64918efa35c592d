#include "execution/returned.h"

#include "table/name.h"
#include "table/plan.h"

namespace interlock::inline execution {

NullableDatum copy_of(Form_pg_attribute column, NullableDatum value) {
    if (!value.isnull && !column->attbyval)
        value.value = datumCopy(value.value, column->attbyval, column->attlen);
    return value;
}

// Only tables of the extension have been compared with their original definition.
const char* target_of(Relation rel, const TableInfo* info) {
    return info->unmodified == Unmodified::kUnknown ? rows_of(rel) : qualified_name(rel);
}

void add_returned(Statement* statement, const char* before, const TableInfo* info,
                  const AttrNumber* columns, int count) {
    for (int i = 0; i < count; i++)
        statement->add("%st.%s", i == 0 ? before : ", ",
                       quote_identifier(column_name(info, columns[i])));
}

// As ExecProcessReturning, of columns alone.
void copy_columns(TupleTableSlot* row, const AttrNumber* columns, int count,
                  NullableDatum* returned) {
    for (int i = 0; i < count; i++) {
        NullableDatum value;
        value.value = slot_getattr(row, columns[i], &value.isnull);
        returned[i] = copy_of(TupleDescAttr(row->tts_tupleDescriptor, columns[i] - 1), value);
    }
}

void copy_result(const TableInfo* info, const AttrNumber* columns, int count,
                 NullableDatum* returned) {
    if (info->unmodified == Unmodified::kUnknown)
        require_columns(info, columns, count);
    for (int i = 0; i < count; i++) {
        TupleDesc result = SPI_tuptable->tupdesc; // null where nothing is returned
        NullableDatum value;
        value.value = SPI_getbinval(SPI_tuptable->vals[0], result, i + 1, &value.isnull);
        returned[i] = copy_of(TupleDescAttr(result, i), value);
    }
}

} // namespace interlock::inline execution

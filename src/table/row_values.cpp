#include "table/row_values.h"

namespace interlock::inline table {

RowValues values_of_row(TupleDesc columns, HeapTuple row) {
    auto* values =
        static_cast<Datum*>(palloc((sizeof(Datum) + sizeof(bool)) * (columns->natts + 1)));
    RowValues result = {values, reinterpret_cast<bool*>(values + columns->natts + 1)};
    heap_deform_tuple(row, columns, result.values, result.nulls);
    return result;
}

// A toasted value that an update does not change is the same pointer: it need not be fetched.
bool same_image(Form_pg_attribute attribute, Datum left, Datum right) {
    if (attribute->attlen == -1) {
        const auto* left_value = reinterpret_cast<varlena*>(DatumGetPointer(left));
        const auto* right_value = reinterpret_cast<varlena*>(DatumGetPointer(right));
        if (VARATT_IS_EXTERNAL_ONDISK(left_value) && VARATT_IS_EXTERNAL_ONDISK(right_value) &&
            memcmp(left_value, right_value, TOAST_POINTER_SIZE) == 0)
            return true;
    }
    return datum_image_eq(left, right, attribute->attbyval, attribute->attlen);
}

TimestampTz time_in_zone(Timestamp time) {
    TimestampTz result;
    if (to_timestamptz(time, &result))
        return result;
    return time < 0 ? MIN_TIMESTAMP : END_TIMESTAMP - 1;
}

bool same_value(Form_pg_attribute attribute, NullableDatum left, NullableDatum right) {
    if (left.isnull || right.isnull)
        return left.isnull == right.isnull;
    return same_image(attribute, left.value, right.value);
}

bool same_value(TupleDesc columns, HeapTuple left, HeapTuple right, AttrNumber attnum) {
    NullableDatum values[2];
    values[0].value = heap_getattr(left, attnum, columns, &values[0].isnull);
    values[1].value = heap_getattr(right, attnum, columns, &values[1].isnull);
    return same_value(TupleDescAttr(columns, attnum - 1), values[0], values[1]);
}

bool same_value(TupleDesc columns, TupleTableSlot* left, TupleTableSlot* right, AttrNumber attnum) {
    NullableDatum values[2];
    values[0].value = slot_getattr(left, attnum, &values[0].isnull);
    values[1].value = slot_getattr(right, attnum, &values[1].isnull);
    return same_value(TupleDescAttr(columns, attnum - 1), values[0], values[1]);
}

} // namespace interlock::inline table

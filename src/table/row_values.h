// The values of a row, by column.
#pragma once

#include "server/server.h"

namespace interlock::inline table {

// The row in a value of a composite type. It points into the value.
inline HeapTupleData row_in(HeapTupleHeader value) {
    HeapTupleData row = {};
    row.t_len = HeapTupleHeaderGetDatumLength(value);
    row.t_data = value;
    return row;
}

// A row with its values by attribute number - 1. Without it, heap_getattr would search the whole
// row for each column after a null.
struct RowValues {
    Datum* values;
    bool* nulls;
    NullableDatum operator[](AttrNumber attnum) const {
        return {values[attnum - 1], nulls[attnum - 1]};
    }
};
RowValues values_of_row(TupleDesc columns, HeapTuple row);
inline RowValues values_in(TupleTableSlot* row) {
    slot_getallattrs(row);
    return {row->tts_values, row->tts_isnull};
}

// Whether two values of a column, which are not null, have the same bytes.
bool same_image(Form_pg_attribute attribute, Datum left, Datum right);

// The value of a column of one of the integer types.
inline int64 integer_of(Oid type, Datum value) {
    switch (type) {
    case INT2OID:
        return DatumGetInt16(value);
    case INT4OID:
        return DatumGetInt32(value);
    default:
        return DatumGetInt64(value);
    }
}

// A time without time zone, as a time in the session's zone. If the result is out of range, it is
// the first or the last possible time. So a row with such a value can be read and written in every
// time zone.
TimestampTz time_in_zone(Timestamp time);

// Whether a column has the same bytes in both rows.
bool same_value(Form_pg_attribute attribute, NullableDatum left, NullableDatum right);
bool same_value(TupleDesc columns, HeapTuple left, HeapTuple right, AttrNumber attnum);
bool same_value(TupleDesc columns, TupleTableSlot* left, TupleTableSlot* right, AttrNumber attnum);

} // namespace interlock::inline table

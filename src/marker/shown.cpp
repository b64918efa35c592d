#include "marker/shown.h"

namespace interlock {

Datum shown_text(NullableDatum value) {
    if (value.isnull || toast_raw_datum_size(value.value) - VARHDRSZ <= kShownBytes)
        return value.isnull ? value.value : PointerGetDatum(PG_DETOAST_DATUM(value.value));
    text* first = DatumGetTextPSlice(value.value, 0, kShownBytes + MAX_MULTIBYTE_CHAR_LEN);
    const char* bytes = VARDATA_ANY(first);
    int length = pg_mbcliplen(bytes, static_cast<int>(VARSIZE_ANY_EXHDR(first)), kShownBytes);
    return PointerGetDatum(cstring_to_text_with_len(bytes, length));
}

namespace {

// A number of a few bytes can have 131,000 digits.
bool is_short_number(Datum value) {
    constexpr int kMostDigits = 1000;
    Numeric number = DatumGetNumeric(value);
    if (numeric_is_nan(number) || numeric_is_inf(number))
        return true;
    Datum size = DirectFunctionCall1(numeric_abs, NumericGetDatum(number));
    Datum limit = DirectFunctionCall3(numeric_in, CStringGetDatum(psprintf("1e%d", kMostDigits)),
                                      ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
    return DatumGetInt32(DirectFunctionCall1(numeric_scale, NumericGetDatum(number))) <=
               kMostDigits &&
           DatumGetBool(DirectFunctionCall2(numeric_lt, size, limit));
}

bool holds_numbers(Oid type);

bool any_holds_numbers(Oid row_type) {
    TupleDesc columns = lookup_rowtype_tupdesc(row_type, -1);
    bool found = false;
    for (int i = 0; i < columns->natts && !found; i++) {
        Form_pg_attribute column = TupleDescAttr(columns, i);
        found = !column->attisdropped && holds_numbers(column->atttypid);
    }
    ReleaseTupleDesc(columns);
    return found;
}

bool holds_numbers(Oid type) {
    Oid base = getBaseType(type);
    if (OidIsValid(get_element_type(base)))
        return holds_numbers(get_element_type(base));
    switch (get_typtype(base)) {
    case TYPTYPE_COMPOSITE:
        return any_holds_numbers(base);
    case TYPTYPE_RANGE:
        return holds_numbers(get_range_subtype(base));
    case TYPTYPE_MULTIRANGE:
        return holds_numbers(get_multirange_range(base));
    default:
        return base == NUMERICOID || base == JSONBOID;
    }
}

} // namespace

bool has_short_text(Oid type, Datum value) {
    return getBaseType(type) == NUMERICOID ? is_short_number(value) : !holds_numbers(type);
}

} // namespace interlock

#include "marker/shown.h"

namespace interlock::marker {

Datum shown_text(NullableDatum value) {
    if (value.isnull || toast_raw_datum_size(value.value) - VARHDRSZ <= kShownBytes)
        return value.isnull ? value.value : PointerGetDatum(PG_DETOAST_DATUM(value.value));
    text* first = DatumGetTextPSlice(value.value, 0, kShownBytes + MAX_MULTIBYTE_CHAR_LEN);
    const char* bytes = VARDATA_ANY(first);
    int length = pg_mbcliplen(bytes, static_cast<int>(VARSIZE_ANY_EXHDR(first)), kShownBytes);
    return PointerGetDatum(cstring_to_text_with_len(bytes, length));
}

// A number of a few bytes can have 131,000 digits.
static bool is_short_number(Datum value) {
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

// A null in an array takes a bit, and an enum or the name of a table four bytes.
constexpr Size kComposedBytes = 1024;

// One value, whose text is not much longer than its bytes.
static bool is_plain(Oid type) {
    Oid base = getBaseType(type);
    char kind = get_typtype(base);
    return (kind == TYPTYPE_BASE || kind == TYPTYPE_ENUM) && !OidIsValid(get_element_type(base)) &&
           base != NUMERICOID && base != JSONBOID;
}

static bool has_plain_columns(Oid row_type) {
    constexpr int kMostColumns = 100; // nulls among them take a bit, and the text has their names
    TupleDesc columns = lookup_rowtype_tupdesc(row_type, -1);
    bool plain = columns->natts <= kMostColumns;
    for (int i = 0; i < columns->natts && plain; i++) {
        Form_pg_attribute column = TupleDescAttr(columns, i);
        plain = column->attisdropped || is_plain(column->atttypid);
    }
    ReleaseTupleDesc(columns);
    return plain;
}

// Composed of plain ones at one level: each more doubles the quotes in what is below it.
static bool is_composed_of_plain(Oid type) {
    Oid base = getBaseType(type);
    Oid element = get_element_type(base);
    if (OidIsValid(element))
        return is_composed_of_plain(element);
    switch (get_typtype(base)) {
    case TYPTYPE_COMPOSITE:
        return has_plain_columns(base);
    case TYPTYPE_RANGE:
        return is_plain(get_range_subtype(base));
    case TYPTYPE_MULTIRANGE:
        return is_plain(get_range_subtype(get_multirange_range(base)));
    default:
        return is_plain(base);
    }
}

bool has_short_text(Oid type, Datum value) {
    Oid base = getBaseType(type);
    if (base == NUMERICOID)
        return is_short_number(value);
    bool is_small = get_typlen(base) != -1 || toast_raw_datum_size(value) <= kComposedBytes;
    return is_plain(base) || (is_small && is_composed_of_plain(base));
}

} // namespace interlock::marker

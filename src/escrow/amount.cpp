#include "escrow/escrow.h"
#include "server/arguments.h"

namespace interlock::escrow {

constexpr int kMostDigits = 18;

static int64 whole_power_of_ten(int exponent) {
    int64 power = 1;
    for (int i = 0; i < exponent; i++)
        power *= 10;
    return power;
}

static Datum power_of_ten(int exponent) {
    return NumericGetDatum(int64_to_numeric(whole_power_of_ten(exponent)));
}

static int digits_of(int32 typmod) { return ((typmod - VARHDRSZ) >> 16) & 0xffff; }

static Datum scaled(const EscrowColumn& column, Datum number) {
    return column.scale == 0 ? number
                             : DirectFunctionCall2(numeric_mul, number, power_of_ten(column.scale));
}

static int64 integer_of_numeric(Datum number) {
    return DatumGetInt64(DirectFunctionCall1(numeric_int8, number));
}

// `to_inside` for a column that has fewer digits now than its limits.
static int64 limit_of(const EscrowColumn& column, const char* text, PGFunction to_inside) {
    Datum limit = DirectFunctionCall3(numeric_in, CStringGetDatum(text),
                                      ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
    return integer_of_numeric(DirectFunctionCall1(to_inside, scaled(column, limit)));
}

static bool is_whole(Datum number) {
    return DatumGetInt32(DirectFunctionCall1(numeric_scale, number)) == 0 ||
           DatumGetBool(DirectFunctionCall2(
               numeric_eq, number, DirectFunctionCall2(numeric_trunc, number, Int32GetDatum(0))));
}

[[noreturn]] static void raise_lost_digits(const EscrowColumn& column) {
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("a change of an escrow counter has more digits than its column \"%s\" has now",
                    NameStr(column.name)),
             errhint("Give the column back its former type, end its reservations, call "
                     "interlock.fold_escrow, and then change the type.")));
}

static bool is_less(Datum left, Datum right) {
    return DatumGetBool(DirectFunctionCall2(numeric_lt, left, right));
}

bool amount_scale(Oid type, int32 typmod, int* scale) {
    *scale = 0;
    if (type == INT2OID || type == INT4OID || type == INT8OID)
        return true;
    if (type != NUMERICOID || typmod < static_cast<int32>(VARHDRSZ))
        return false;
    int digits = digits_of(typmod);
    *scale = (((typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
    return digits <= kMostDigits && *scale >= 0 && *scale <= digits;
}

EscrowLimits limits_of(const EscrowColumn& column) {
    int64 least = limit_of(column, column.least_text, numeric_ceil);
    if (column.most_text[0] == '\0')
        return {Max(least, column.range.least), column.range.most};
    return {Max(least, column.range.least),
            Min(limit_of(column, column.most_text, numeric_floor), column.range.most)};
}

EscrowLimits range_of_type(Oid type, int32 typmod) {
    switch (type) {
    case INT2OID:
        return {PG_INT16_MIN, PG_INT16_MAX};
    case INT4OID:
        return {PG_INT32_MIN, PG_INT32_MAX};
    case INT8OID:
        return {PG_INT64_MIN, PG_INT64_MAX};
    default: {
        int64 beyond = whole_power_of_ten(digits_of(typmod));
        return {1 - beyond, beyond - 1};
    }
    }
}

int64 amount_of(const EscrowColumn& column, Datum value) {
    return column.type == NUMERICOID ? integer_of_numeric(scaled(column, value))
                                     : integer_of(column.type, value);
}

Datum value_of(const EscrowColumn& column, int64 amount) {
    switch (column.type) {
    case INT2OID:
        return DirectFunctionCall1(int82, Int64GetDatum(amount));
    case INT4OID:
        return DirectFunctionCall1(int84, Int64GetDatum(amount));
    case INT8OID:
        return Int64GetDatum(amount);
    default:
        return numeric_of(column, amount);
    }
}

Datum numeric_of(const EscrowColumn& column, int64 amount) {
    return NumericGetDatum(int64_div_fast_to_numeric(amount, column.scale));
}

int64 amount_of_numeric(const EscrowColumn& column, Datum number) {
    Datum whole = scaled(column, number);
    if (DatumGetInt32(DirectFunctionCall1(numeric_scale, number)) > column.scale &&
        !is_whole(whole))
        raise_lost_digits(column);
    return integer_of_numeric(whole);
}

int64 amount_argument(const Arguments& arguments, int n, const char* name,
                      const EscrowColumn& column) {
    return amount_of_argument(arguments.required(n, name), name, column);
}

int64 amount_of_argument(Datum value, const char* name, const EscrowColumn& column) {
    Numeric number = DatumGetNumeric(value);
    if (numeric_is_nan(number) || numeric_is_inf(number))
        refuse_argument(name, "must be a finite number");
    Datum most = NumericGetDatum(int64_to_numeric(kMostAmount));
    Datum whole = scaled(column, value);
    if (is_less(most, DirectFunctionCall1(numeric_abs, whole)))
        refuse_argument(name, "is too large");
    if (!is_whole(whole))
        refuse_argument(
            name, psprintf("must not have more than %d digits behind the point", column.scale));
    return integer_of_numeric(whole);
}

[[noreturn]] static void raise_out_of_range() {
    ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                    errmsg("the value of an escrow counter is out of range")));
}

int64 add_amounts(int64 left, int64 right) {
    int64 sum;
    if (pg_add_s64_overflow(left, right, &sum))
        raise_out_of_range();
    return sum;
}

void AmountSum::add(int64 amount) {
    int64 sum;
    if (pg_add_s64_overflow(low, amount, &sum)) {
        sum = static_cast<int64>(static_cast<uint64>(low) + static_cast<uint64>(amount));
        wraps += amount > 0 ? 1 : -1;
    }
    low = sum;
}

int64 AmountSum::amount() const {
    if (wraps != 0)
        raise_out_of_range();
    return low;
}

} // namespace interlock::escrow

// Numbers as durations: what the casts to the type interlock.seconds call. The type is stored and
// printed as interval is, so that the verbs read arguments of both alike.

#include "server/arguments.h"

using namespace interlock;

namespace {

[[noreturn]] void refuse_number() {
    ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
                    errmsg("number of seconds out of range")));
}

Datum interval_of(int64 microseconds) {
    auto* result = static_cast<Interval*>(palloc0(sizeof(Interval)));
    result->time = microseconds;
    return IntervalPGetDatum(result);
}

Datum of_integer(int64 seconds) {
    int64 microseconds;
    if (pg_mul_s64_overflow(seconds, USECS_PER_SEC, &microseconds))
        refuse_number();
    return interval_of(microseconds);
}

Datum of_float(double seconds) {
    double microseconds = rint(seconds * USECS_PER_SEC);
    if (std::isnan(microseconds) || !FLOAT8_FITS_IN_INT64(microseconds))
        refuse_number();
    return interval_of(static_cast<int64>(microseconds));
}

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(seconds_in);
PG_FUNCTION_INFO_V1(number_to_seconds);

Datum seconds_in(PG_FUNCTION_ARGS) {
    Datum value;
    if (!read_or_report(interval_in, PG_GETARG_CSTRING(0), fcinfo->context, &value))
        PG_RETURN_NULL();
    return value;
}

Datum number_to_seconds(PG_FUNCTION_ARGS) {
    // A cast from a domain calls the function with the value as it is.
    switch (getBaseType(Arguments(fcinfo).type(0))) {
    case INT2OID:
        return of_integer(PG_GETARG_INT16(0));
    case INT4OID:
        return of_integer(PG_GETARG_INT32(0));
    case INT8OID:
        return of_integer(PG_GETARG_INT64(0));
    case NUMERICOID:
        return of_float(
            DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, PG_GETARG_DATUM(0))));
    default:
        return of_float(PG_GETARG_FLOAT8(0));
    }
}
}

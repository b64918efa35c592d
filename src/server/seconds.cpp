#include "server/seconds.h"

#include "server/arguments.h"
#include "server/error.h"

namespace interlock::inline server {

// NaN and numbers that are out of range become the longest duration, or the shortest below zero.
static Datum interval_of(double seconds) {
    double microseconds = rint(seconds * USECS_PER_SEC);
    auto* result = static_cast<Interval*>(palloc0(sizeof(Interval)));
    if (std::isnan(microseconds))
        result->time = PG_INT64_MAX;
    else if (FLOAT8_FITS_IN_INT64(microseconds))
        result->time = static_cast<int64>(microseconds);
    else
        result->time = microseconds > 0 ? PG_INT64_MAX : PG_INT64_MIN;
    return IntervalPGetDatum(result);
}

static bool is_number(const char* text, double* number) {
    char* end;
    *number = strtod(text, &end);
    bool is_empty = end == text;
    while (isspace(static_cast<unsigned char>(*end)))
        end++;
    return !is_empty && *end == '\0';
}

bool read_seconds(char* text, Node* context, Datum* interval) {
    double number;
    if (is_number(text, &number)) {
        *interval = interval_of(number);
        return true;
    }
    return with_hint(
        [] { errhint("A duration is an interval, such as '15 min', or a number of seconds."); },
        [&] { return read_or_report(interval_in, text, context, interval); });
}

extern "C" {
PG_FUNCTION_INFO_V1(seconds_in);
PG_FUNCTION_INFO_V1(seconds_out);
PG_FUNCTION_INFO_V1(seconds_recv);
PG_FUNCTION_INFO_V1(seconds_send);
PG_FUNCTION_INFO_V1(number_to_seconds);

Datum seconds_in(PG_FUNCTION_ARGS) {
    Datum value;
    if (!read_seconds(PG_GETARG_CSTRING(0), fcinfo->context, &value))
        PG_RETURN_NULL();
    return value;
}

Datum seconds_out(PG_FUNCTION_ARGS) { return interval_out(fcinfo); }
Datum seconds_recv(PG_FUNCTION_ARGS) { return interval_recv(fcinfo); }
Datum seconds_send(PG_FUNCTION_ARGS) { return interval_send(fcinfo); }

Datum number_to_seconds(PG_FUNCTION_ARGS) {
    // A cast from a domain calls the function with the value as it is.
    switch (getBaseType(Arguments(fcinfo).type(0))) {
    case INT2OID:
        return interval_of(PG_GETARG_INT16(0));
    case INT4OID:
        return interval_of(PG_GETARG_INT32(0));
    case INT8OID:
        return interval_of(static_cast<double>(PG_GETARG_INT64(0)));
    case NUMERICOID:
        return interval_of(
            DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, PG_GETARG_DATUM(0))));
    case FLOAT4OID:
        return interval_of(PG_GETARG_FLOAT4(0));
    default:
        return interval_of(PG_GETARG_FLOAT8(0));
    }
}
}

} // namespace interlock::inline server

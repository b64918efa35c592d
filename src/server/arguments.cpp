#include "server/arguments.h"

namespace interlock::inline server {

static int64 checked_duration(const Interval* interval, double least, const char* name,
                              const char* rule, const char* hint) {
    double duration = length_of(*interval);
    if (duration < least || duration > static_cast<double>(kLongestDuration))
        refuse_argument(name, rule, hint);
    return static_cast<int64>(duration);
}

int64 duration_argument(const Interval* interval, const char* name, const char* hint) {
    return checked_duration(interval, 1.0, name,
                            "must be a duration above zero and at most ten years", hint);
}

int64 duration_or_zero_argument(const Interval* interval, const char* name, const char* hint) {
    return checked_duration(interval, 0.0, name, "must be a duration of zero to ten years", hint);
}

Interval* duration_to_store(Interval* interval, const char* name) {
    int64 duration = duration_argument(interval, name);
    if (interval->month >= 0 && interval->day >= 0 && interval->time >= 0)
        return interval;
    auto* sum = static_cast<Interval*>(palloc0(sizeof(Interval)));
    sum->time = duration;
    return sum;
}

void refuse_argument(const char* name, const char* rule, const char* hint) {
    ereport(ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("argument \"%s\" %s", name, rule),
             hint != nullptr ? errhint("%s", hint) : 0));
}

void refuse_empty(const char* name, const char* hint) {
    refuse_argument(name, "must not be empty", hint);
}

void refuse_long(const char* name, size_t limit, const char* hint) {
    refuse_argument(name, psprintf("must not be longer than %zu bytes", limit), hint);
}

void refuse_value(const char* name, std::string_view value, const char* hint) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("unknown value \"%.*s\" for argument \"%s\"",
                           static_cast<int>(value.size()), value.data(), name),
                    errhint("%s", hint)));
}

void refuse_null(const char* name) {
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("argument \"%s\" must not be null", name)));
}

void refuse_nulls(const char* name, const char* hint) {
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("argument \"%s\" must not contain nulls", name),
                    hint != nullptr ? errhint("%s", hint) : 0));
}

int32 above_zero(int32 value, const char* name, const char* hint) {
    if (value <= 0)
        refuse_argument(name, "must be above zero", hint);
    return value;
}

int32 not_negative(int32 value, const char* name) {
    if (value < 0)
        refuse_argument(name, "must not be negative");
    return value;
}

const char* name_of_key(int element) {
    return element == 0 ? "key" : psprintf("keys[%d]", element);
}

char* print_value(Oid type, Datum value) {
    switch (type) {
    case TEXTOID:
        return TextDatumGetCString(value);
    case UNKNOWNOID:
        return pstrdup(DatumGetCString(value));
    case BOOLOID:
        return pstrdup(DatumGetBool(value) ? "true" : "false");
    case BPCHAROID: {
        char* padded = TextDatumGetCString(value);
        padded[bpchartruelen(padded, strlen(padded))] = '\0';
        return padded;
    }
    default:
        break;
    }
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(type, &output, &is_varlena);
    return OidOutputFunctionCall(output, value);
}

char* Arguments::any_string(int n, const char* arg) const {
    Datum value = required(n, arg);
    return print_value(type(n), value);
}

} // namespace interlock::inline server

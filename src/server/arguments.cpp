#include "server/arguments.h"

namespace interlock {

int64 duration_argument(const Interval* interval, const char* name, const char* hint) {
    double days = interval->month * 30.0 + interval->day;
    double duration = days * USECS_PER_DAY + static_cast<double>(interval->time);
    if (duration < 1.0 || duration > static_cast<double>(kLongestDuration))
        ereport(
            ERROR,
            (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
             errmsg("argument \"%s\" must be a duration above zero and at most ten years", name),
             errhint("%s", hint)));
    return static_cast<int64>(days) * USECS_PER_DAY + interval->time;
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

} // namespace interlock

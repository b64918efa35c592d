#include "server/stable_text.h"

#include "server/arguments.h"

namespace interlock::inline server {

bool prints_plainly() {
    return DateStyle == USE_ISO_DATES && IntervalStyle == INTSTYLE_POSTGRES &&
           extra_float_digits >= 1 && bytea_output == BYTEA_OUTPUT_HEX;
}

bool zone_is_utc() { return strcmp(pg_get_timezone_name(session_timezone), "UTC") == 0; }

constexpr const char* kPath = "pg_catalog"; // all other names have their schema
constexpr const char* kMoney = "C";

static void set_for_now(const char* name, const char* value) {
    (void)set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                            false);
}

bool prints_plainly(Printing by) {
    return (!by.styles || prints_plainly()) &&
           (!by.names || strcmp(namespace_search_path, kPath) == 0) &&
           (!by.money || strcmp(GetConfigOption("lc_monetary", false, false), kMoney) == 0);
}

void print_plainly(Printing by) {
    if (by.styles)
        print_plainly(false);
    if (by.names)
        set_for_now("search_path", kPath);
    if (by.money)
        set_for_now("lc_monetary", kMoney);
}

void print_plainly(bool utc) {
    constexpr const char* settings[][2] = {{"datestyle", "ISO"},
                                           {"intervalstyle", "postgres"},
                                           {"extra_float_digits", "1"},
                                           {"bytea_output", "hex"},
                                           {"timezone", "UTC"}};
    for (auto& setting : settings)
        if (utc || strcmp(setting[0], "timezone") != 0)
            set_for_now(setting[0], setting[1]);
}

char* stable_text(Oid type, Datum value) {
    const int utc = 0;
    type = getBaseType(type);
    switch (type) {
    case INT2OID:
    case INT4OID:
    case INT8OID:
    case NUMERICOID:
    case BOOLOID:
    case UUIDOID:
    case TEXTOID:
    case VARCHAROID:
    case BPCHAROID:
    case UNKNOWNOID:
        return print_value(type, value);
    case DATEOID:
    case TIMESTAMPOID:
    case TIMESTAMPTZOID:
        return JsonEncodeDateTime(static_cast<char*>(palloc(MAXDATELEN + 1)), value, type, &utc);
    default: {
        char* result = nullptr;
        printing_alike(true, [&] { result = print_value(type, value); });
        return result;
    }
    }
}

} // namespace interlock::inline server

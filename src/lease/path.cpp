// key_path: the path of a key, whatever is in its levels.

#include "lease/path.h"
#include "server/key_parts.h"

namespace interlock::lease {

// The bytes of / and % are part of no other character in a server encoding.
void append_level(StringInfo path, const char* level) {
    for (const char* at = level; *at != '\0'; at++)
        if (*at == '/')
            appendStringInfoString(path, "%2F");
        else if (*at == '%')
            appendStringInfoString(path, "%25");
        else
            appendStringInfoChar(path, *at);
}

static Datum join_levels(const KeyParts& parts) {
    StringInfoData path;
    initStringInfo(&path);
    for (int i = 0; i < parts.count; i++) {
        if (parts.texts[i][0] == '\0')
            ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                            errmsg("part %d of the key must not be empty", i + 1),
                            errhint("Each part is a level of the path; none may be empty.")));
        if (i > 0)
            appendStringInfoChar(&path, '/');
        append_level(&path, parts.texts[i]);
    }
    return PointerGetDatum(cstring_to_text_with_len(path.data, path.len));
}

extern "C" {
PG_FUNCTION_INFO_V1(key_path);
PG_FUNCTION_INFO_V1(key_path_any);
PG_FUNCTION_INFO_V1(key_path_text_and_any);

Datum key_path(PG_FUNCTION_ARGS) { return join_levels(key_parts(fcinfo)); }
Datum key_path_any(PG_FUNCTION_ARGS) { return join_levels(any_key_parts(fcinfo)); }
Datum key_path_text_and_any(PG_FUNCTION_ARGS) {
    return join_levels(text_and_any_key_parts(fcinfo));
}
}

} // namespace interlock::lease

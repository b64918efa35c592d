#include "server/error.h"

namespace interlock::inline server {

char* json_object(std::initializer_list<JsonField> fields) {
    StringInfoData out;
    initStringInfo(&out);
    const char* separator = "{";
    for (const JsonField& field : fields) {
        appendStringInfoString(&out, separator);
        escape_json(&out, field.name);
        appendStringInfoString(&out, ": ");
        if (field.text != nullptr)
            escape_json(&out, field.text);
        else
            appendStringInfoString(&out, field.raw != nullptr ? field.raw : "null");
        separator = ", ";
    }
    appendStringInfoChar(&out, '}');
    return out.data;
}

void raise_concurrent_update() {
    ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                    errmsg("could not serialize access due to concurrent update")));
}

void copy_message(char* to, size_t size, const char* message) {
    int length = static_cast<int>(strlen(message));
    length = pg_mbcliplen(message, length, static_cast<int>(size) - 1);
    memcpy(to, message, length);
    to[length] = '\0';
}

} // namespace interlock::inline server

#include "server/named_function.h"

#include "server/error.h"

namespace interlock::inline server {

// A parenthesis within quotes is part of the name.
static bool has_types(const char* name) {
    bool is_quoted = false;
    for (; *name != '\0'; name++) {
        if (*name == '"')
            is_quoted = !is_quoted;
        else if (*name == '(' && !is_quoted)
            return true;
    }
    return false;
}

static const char* with_types(const char* name, std::initializer_list<Oid> types) {
    StringInfoData text;
    initStringInfo(&text);
    appendStringInfo(&text, "%s(", name);
    const char* comma = "";
    for (Oid type : types) {
        appendStringInfo(&text, "%s%s", comma, format_type_be(type));
        comma = ", ";
    }
    appendStringInfoChar(&text, ')');
    return text.data;
}

static bool is_of_name(int code) {
    return is_of_input(code) || code == ERRCODE_UNDEFINED_FUNCTION ||
           code == ERRCODE_UNDEFINED_OBJECT || code == ERRCODE_UNDEFINED_SCHEMA ||
           code == ERRCODE_INVALID_NAME || code == ERRCODE_SYNTAX_ERROR ||
           code == ERRCODE_TOO_MANY_ARGUMENTS;
}

Oid named_function(const char* name, std::initializer_list<Oid> types, const char* hint) {
    const char* full = has_types(name) ? name : with_types(name, types);
    return with_hint(
        [hint] { errhint("%s", hint); },
        [full] {
            return DatumGetObjectId(DirectFunctionCall1(regprocedurein, CStringGetDatum(full)));
        },
        is_of_name);
}

} // namespace interlock::inline server

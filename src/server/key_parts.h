// The arguments of functions that make one key out of several parts.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

struct KeyParts {
    char** texts;
    int count;
    char** begin() const { return texts; }
    char** end() const { return texts + count; }
};

// Of a function (VARIADIC text[]), of one (VARIADIC "any"), whose values are as stable_text() has
// them, and of one (text, VARIADIC "any"). Raises 22004 for nulls, 22023 for no part at all.
KeyParts key_parts(FunctionCallInfo fcinfo);
KeyParts any_key_parts(FunctionCallInfo fcinfo);
KeyParts text_and_any_key_parts(FunctionCallInfo fcinfo);

} // namespace interlock::inline server

// The arguments of functions that make one key from several parts.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

struct KeyParts {
    char** texts;
    int count;
    char** begin() const { return texts; }
    char** end() const { return texts + count; }
};

// The parts that were passed to the function. It can be declared (VARIADIC text[]), (VARIADIC
// "any") or (text, VARIADIC "any"). Values of "any" are converted by stable_text(). Raises 22004
// for nulls, and 22023 if there is no part.
KeyParts key_parts(FunctionCallInfo fcinfo);
KeyParts any_key_parts(FunctionCallInfo fcinfo);
KeyParts text_and_any_key_parts(FunctionCallInfo fcinfo);

} // namespace interlock::inline server

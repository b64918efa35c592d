// An argument that names a function for a verb to call.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// The function that a caller names: 'app.pay' for the one that takes these types, or
// 'app.pay(jsonb)' with its argument types. Another signature is returned, too: the verb says what
// it expects. Errors, with the hint: 42883 no such function, 42704 no such type, 42602 and 22P02 no
// name.
Oid named_function(const char* name, std::initializer_list<Oid> types, const char* hint);

} // namespace interlock::inline server

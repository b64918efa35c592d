// An argument that names a function, which an SQL function then calls.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// Finds the function that the caller names. 'app.pay' is the function that takes these types.
// 'app.pay(jsonb)' names the argument types. It may then have other types than expected: the
// calling function checks that. Raises with the hint: 42883 if there is no such function, 42704 if
// there is no such type, 42602 or 22P02 if the text is no name.
Oid named_function(const char* name, std::initializer_list<Oid> types, const char* hint);

} // namespace interlock::inline server

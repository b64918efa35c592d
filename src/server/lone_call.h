// A warning for a call whose effect ended with its own statement.
//
// In autocommit mode each statement is a transaction. A lock of the transaction, or a writer's
// name for the transaction, is gone before the next statement. The server warns of SET LOCAL for
// that reason (25P01), and these functions do the same.
//
// The warning is raised at the commit, and only if the call was all that the transaction did:
// - The session was not in a transaction block, and the pipeline had no other statement.
// - The client's statement is a SELECT with one call, as the only column or as the only item of
//   FROM. Routers such as PL/Proxy send the second form. The arguments are constants or parameters.
// Other calls without effect are not recognized.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// To be called by the function itself after it has done its work. The texts must live until the
// commit. `message` says which effect has ended. `hint` says how to call the function so that the
// effect lasts.
void warn_if_alone(FunctionCallInfo fcinfo, const char* message, const char* hint);

// The same for a function that checks something. In the SELECT list, a lone call only checks the
// current state, and does not warn. In FROM, the call comes from a router and was meant to protect
// the next statement, so it warns.
void warn_if_routed(FunctionCallInfo fcinfo, const char* message, const char* hint);

} // namespace interlock::inline server

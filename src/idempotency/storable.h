// What callers give to be stored.
//
// Who dumps the table must be able to restore it, and a line that cannot be read again would stop
// COPY, and with it the keys of all scopes.
#pragma once

#include "server/server.h"

namespace interlock {

// Raises 54000 for more than 1,000 levels: the server reads JSON with a function for each, and its
// stack may be smaller than that of the caller, who can build deeper ones. Null passes.
void require_shallow(const char* name, NullableDatum json);

// The same for more than 1 MB, too.
void require_small(const char* name, NullableDatum json);

// Raises 22023 for a text of more than 1,024 bytes.
void require_short(const char* name, NullableDatum text);

} // namespace interlock

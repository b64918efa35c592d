// What callers give to be stored.
//
// Who dumps the table must be able to restore it, and a line that cannot be read again would stop
// COPY, and with it the keys of all scopes.
#pragma once

#include "server/server.h"

namespace interlock::idempotency {

// Raises 54000 for more than 1,000 levels, which a caller can build: the server reads JSON with a
// function for each, and its stack may be smaller there. And for a text that has many times the
// bytes of the JSON: a number of a few bytes can have 131,000 digits, and a line of a dump has at
// most 1 GB. Null passes.
void require_readable(const char* name, NullableDatum json);

// The same for more than 1 MB, too.
void require_small(const char* name, NullableDatum json);

// Raises 22023 for a text of more than 1,024 bytes.
void require_short(const char* name, NullableDatum text);

} // namespace interlock::idempotency

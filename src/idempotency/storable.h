// Checks values that callers want to store.
//
// It must be possible to restore a dump of the table. A line that cannot be read would stop COPY,
// and the keys of all scopes would be missing.
#pragma once

#include "server/server.h"

namespace interlock::idempotency {

// Raises 54000 for JSON with more than 1,000 levels. A caller can build it, but the server reads
// JSON with one function call for each level, and may have a smaller stack at the restore. Also
// raises 54000 if the text is much longer than the bytes of the JSON. A number of a few bytes can
// have 131,000 digits, and a line of a dump has at most 1 GB. Null is allowed.
void require_readable(const char* name, NullableDatum json);

// The same. Also raises for more than 1 MB.
void require_small(const char* name, NullableDatum json);

// Raises 22023 for a text of more than 1,024 bytes.
void require_short(const char* name, NullableDatum text);

} // namespace interlock::idempotency

// What views show of values that a table's owner has written past the triggers: of a few bytes of
// storage these can make gigabytes.
#pragma once

#include "server/server.h"

namespace interlock::marker {

constexpr Size kShownBytes = 8192;

// The first bytes of a text, between characters. Fetches no more of a value out of line.
Datum shown_text(NullableDatum value);

// Whether the value's text is not much longer than its bytes: no number of more than a thousand
// digits, no jsonb; no array, range or composite of these or of more than 1 kB, and none that is
// nested.
bool has_short_text(Oid type, Datum value);

} // namespace interlock::marker

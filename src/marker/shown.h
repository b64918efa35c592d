// What views show of values that a table's owner has written past the triggers. From a few stored
// bytes such values can make gigabytes of text.
#pragma once

#include "server/server.h"

namespace interlock::marker {

constexpr Size kShownBytes = 8192;

// The first bytes of a text, cut between two characters. If the value is stored out of line, it
// fetches only these bytes.
Datum shown_text(NullableDatum value);

// Whether the value's text is not much longer than its bytes. False for a number of more than a
// thousand digits and for jsonb. False for an array, range or composite type of these, of more than
// 1 kB, or with nested values.
bool has_short_text(Oid type, Datum value);

} // namespace interlock::marker

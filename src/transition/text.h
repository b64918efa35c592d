// The shape of the arguments that define_transitions gives its trigger, checked without an error:
// the input function of jsonb raises for what is no JSON, for numbers out of range, for characters
// that the database has not, and for what is nested too deep.
#pragma once

#include "server/server.h"

namespace interlock {

// {"from": ["to", ...], ...}
bool is_transitions(const char* text);

// ["state", ...]
bool is_states(const char* text);

} // namespace interlock

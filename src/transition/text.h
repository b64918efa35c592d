// The syntax of the arguments that define_transitions gives its trigger, checked without an error:
// the input function of jsonb raises for invalid JSON, for numbers out of range, for characters
// that the database encoding does not have, and for deep nesting.
#pragma once

#include "server/server.h"

namespace interlock::transition {

// {"from": ["to", ...], ...}
bool is_transitions(const char* text);

// ["state", ...]
bool is_states(const char* text);

// {"from": {"to": 0, ...}, ...}
bool is_guards(const char* text);

} // namespace interlock::transition

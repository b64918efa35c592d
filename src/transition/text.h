// Checks the syntax of the arguments that define_transitions writes for its trigger, and raises
// nothing. The input function of jsonb would raise errors for invalid JSON, numbers out of range,
// characters that the database encoding does not have, and deep nesting.
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

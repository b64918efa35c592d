// Type interlock.seconds, for arguments that are durations. It is stored and printed like interval,
// so Arguments::interval() reads both. This type only converts texts and numbers.
// duration_argument() (server/arguments.h) checks the value and names the argument in its error.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// Reads a text that has an interval or a number of seconds. For any other text it raises 22007. If
// `context` collects soft errors, it reports the error there and returns false.
bool read_seconds(char* text, Node* context, Datum* interval);

} // namespace interlock::inline server

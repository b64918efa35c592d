// Levels of the keys that are paths.
#pragma once

#include "server/server.h"

namespace interlock::lease {

// Appends a level with its slashes as %2F and its percent signs as %25, so that it stays one level
// and no two levels look alike.
void append_level(StringInfo path, const char* level);

} // namespace interlock::lease

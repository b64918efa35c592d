// Levels of keys that are paths.
#pragma once

#include "server/server.h"

namespace interlock::lease {

// Appends a level, with slashes as %2F and percent signs as %25. So it stays one level, and
// different levels look different.
void append_level(StringInfo path, const char* level);

} // namespace interlock::lease

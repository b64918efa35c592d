// The configuration of history as JSON (table/mechanism.h).
#pragma once

#include "table/mechanism.h"

namespace interlock::history {

extern const Mechanism kHistoryMechanism;

} // namespace interlock::history

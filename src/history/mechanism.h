// What users configure of history, as JSON (table/mechanism.h).
#pragma once

#include "table/mechanism.h"

namespace interlock {

extern const Mechanism kHistoryMechanism;

} // namespace interlock

// What users configure of versions, as JSON (table/mechanism.h).
#pragma once

#include "table/mechanism.h"

namespace interlock {

extern const Mechanism kVersionMechanism;

} // namespace interlock

// What users configure of markers, as JSON (table/mechanism.h).
#pragma once

#include "table/mechanism.h"

namespace interlock {

extern const Mechanism kMarkerMechanism;

} // namespace interlock

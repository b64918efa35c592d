// The configuration of markers as JSON (table/mechanism.h).
#pragma once

#include "table/mechanism.h"

namespace interlock::marker {

extern const Mechanism kMarkerMechanism;

} // namespace interlock::marker

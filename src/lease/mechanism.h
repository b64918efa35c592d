// The configuration of required leases as JSON (table/mechanism.h).
#pragma once

#include "table/mechanism.h"

namespace interlock::lease {

extern const Mechanism kLeaseMechanism;

} // namespace interlock::lease

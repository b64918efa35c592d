// The configuration of versions as JSON (table/mechanism.h).
#pragma once

#include "table/mechanism.h"

namespace interlock::version {

extern const Mechanism kVersionMechanism;

} // namespace interlock::version

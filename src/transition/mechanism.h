// The configuration of transitions as JSON (table/mechanism.h).
#pragma once

#include "table/mechanism.h"

namespace interlock::transition {

extern const Mechanism kTransitionMechanism;

} // namespace interlock::transition

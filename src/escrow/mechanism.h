// The configuration of escrow counters as JSON (table/mechanism.h), by column:
//
//     {"stock": {"minimum": "0", "maximum": null, "plain_updates": "reject",
//                "fold_moves_version": false}}
#pragma once

#include "table/mechanism.h"

namespace interlock::escrow {

extern const Mechanism kEscrowMechanism;

} // namespace interlock::escrow

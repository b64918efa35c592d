// The configuration of column writers as JSON (table/mechanism.h):
//
//     {"columns": {"price": {"writer": "importer", "on_violation": "reject"},
//                  "stock": {"strategy": "merge", "blind_updates": "allow"}},
//      "groups": [["price", "stock"]]}
//
// If a column already has a rule, settings that the new rule does not name stay unchanged. A column
// is owned or shared. A new writer of an owned column gets the column.
#pragma once

#include "table/mechanism.h"

namespace interlock::ownership {

extern const Mechanism kOwnershipMechanism;

} // namespace interlock::ownership

// What users configure of the writers of columns, as JSON (table/mechanism.h):
//
//     {"columns": {"price": {"writer": "importer", "on_violation": "reject"},
//                  "stock": {"strategy": "merge", "blind_updates": "allow"}},
//      "groups": [["price", "stock"]]}
//
// A column that has been named before keeps what its rule does not name now. A column is owned or
// shared; another writer of an owned one is handed over.
#pragma once

#include "table/mechanism.h"

namespace interlock::ownership {

extern const Mechanism kOwnershipMechanism;

} // namespace interlock::ownership

// The configuration of children as JSON (table/mechanism.h): foreign keys by parent.
//
//     {"public.invoice": {"foreign_keys": [["invoice_id"]]}}
#pragma once

#include "table/mechanism.h"

namespace interlock::children {

extern const Mechanism kChildrenMechanism;

} // namespace interlock::children

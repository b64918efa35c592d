// The first use of leases in a database after a start: what was before, and is there a grace?
#pragma once

#include "lease/service.h"

namespace interlock {

// Takes over what the store says, and writes the number of this run into it (R10).
void load_leases(LeaseDatabase* database);

} // namespace interlock

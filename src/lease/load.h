// The first use of leases in a database after a start: what was before, and is there a grace?
#pragma once

#include "lease/service.h"

namespace interlock {

// This database's leases, ready to be used. The first call of a run takes over what the store says,
// and writes the number of the run into it (R10). Raises 55000 without preload, 25006 on a standby.
LeaseDatabase* lease_database();

} // namespace interlock

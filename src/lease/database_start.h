// The first use of leases in a database after a start: restores leases and decides whether there is
// a grace.
#pragma once

#include "lease/database.h"

namespace interlock::lease {

// This database's leases, ready to be used. The first call of a run reads the store, and writes the
// number of the run into it (R10). Raises 55000 without preload, 25006 on a standby.
LeaseDatabase* lease_database();

} // namespace interlock::lease

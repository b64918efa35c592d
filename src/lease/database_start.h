// The first use of leases in a database after a start. It restores leases and decides whether there
// is a grace.
#pragma once

#include "lease/database.h"

namespace interlock::lease {

// The leases of this database, ready for use. The first call in a run of the server reads the store
// and writes the number of the run into it (R10). Raises 55000 without preload, and 25006 on a
// standby.
LeaseDatabase* lease_database();

} // namespace interlock::lease

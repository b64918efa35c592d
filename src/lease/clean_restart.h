// Keeps leases over a clean restart. The postmaster saves them after all other processes have
// exited, and reads them before it starts any process.
#pragma once

#include "lease/database.h"

namespace interlock::lease {

// Reads the saved leases, removes the file, and arranges for the next save. To be called in the
// postmaster, with new shared memory.
void restore_leases();

} // namespace interlock::lease

// Leases across a clean restart: the postmaster saves them when all other processes have exited,
// and reads them back before it starts any.
#pragma once

#include "lease/database.h"

namespace interlock::lease {

// Reads what was saved, removes the file, and arranges for the next save. In the postmaster, with
// new shared memory.
void restore_leases();

} // namespace interlock::lease

// Leases across a clean restart: the postmaster saves them when all others are gone, and reads them
// back before anybody comes.
#pragma once

#include "lease/service.h"

namespace interlock {

// Reads what was saved, removes the file, and arranges for the next save. In the postmaster, with
// new shared memory.
void restore_leases();

} // namespace interlock

// The errors of leases: IL006.
#pragma once

#include "lease/key.h"

namespace interlock::lease {

// For assert_lease() with a token that does not hold the lease.
[[noreturn]] void raise_not_held(const LeaseKey& key, int64 token);

// For a write to a table that needs a lease (require_lease). Null for `key`: the caller may not
// read the columns that it is made of.
[[noreturn]] void raise_lease_needed(Relation rel, const char* key);

} // namespace interlock::lease

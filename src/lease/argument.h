// Arguments that several verbs of leases share.
#pragma once

#include "lease/lease_table.h"
#include "server/arguments.h"
#include "server/deadline.h"

namespace interlock::lease {

// A path of at most 1,024 bytes and 64 levels, none of which is empty; else 22023. The element,
// from 1, is that of an array argument "keys".
LeaseKey lease_key_argument(const text* key, int element = 0);

// 54000 for more keys than one call of the function takes.
void check_lease_count(int keys, const char* function);

// A time to live above zero and at most interlock.max_lease_ttl, in microseconds; else 22023.
int64 ttl_argument(const Arguments& arguments, int n);

// Zero to ttl, which ends the lease in any case; else 22023. Zero when it is not given.
int64 at_least_argument(const Arguments& arguments, int n, int64 ttl);

// 22023, for a lease that is bound to a session.
[[noreturn]] void refuse_at_least_of_session();

// 'exclusive' or 'shared'; 'ttl' or 'session'; else 22023.
LeaseMode lease_mode_argument(const Arguments& arguments, int n);
LeaseBond lease_bond_argument(const Arguments& arguments, int n);

// The label of at most 255 bytes; else 22023. Null: the default.
const char* holder_argument(const Arguments& arguments, int n, size_t* length);

// The default holder: the application's name, else the process.
const char* default_holder(size_t* length);

} // namespace interlock::lease

// Arguments that several functions of leases share.
#pragma once

#include "lease/lease_table.h"
#include "server/arguments.h"
#include "server/deadline.h"

namespace interlock::lease {

// A path of at most 1,024 bytes and 64 levels, none of which is empty. Raises 22023 for any other
// text. `element`, counted from 1, is the place in an array argument "keys".
LeaseKey lease_key_argument(const text* key, int element = 0);

// Raises 54000 for more keys than one call of the function may have.
void check_lease_count(int keys, const char* function);

// A time to live above zero and at most interlock.max_lease_ttl, in microseconds. Raises 22023 for
// any other value.
int64 ttl_argument(const Arguments& arguments, int n);

// A time from zero to ttl, because the ttl ends the lease in any case. Raises 22023 for any other
// value. Zero if it is not given.
int64 at_least_argument(const Arguments& arguments, int n, int64 ttl);

// Raises 22023, for a lease that is bound to a session.
[[noreturn]] void refuse_at_least_of_session();

// 'exclusive' or 'shared', and 'ttl' or 'session'. Raise 22023 for other words.
LeaseMode lease_mode_argument(const Arguments& arguments, int n);
LeaseBond lease_bond_argument(const Arguments& arguments, int n);

// The holder's name of at most 255 bytes. Raises 22023 if it is longer. Null means the default.
const char* holder_argument(const Arguments& arguments, int n, size_t* length);

// The default holder: the application's name, otherwise the process.
const char* default_holder(size_t* length);

} // namespace interlock::lease

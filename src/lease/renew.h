// Renewing one lease, or several at one moment.
#pragma once

#include "lease/lease.h"

namespace interlock {

enum class Renewal {
    kDone,
    kLost,
    kNotDurable,  // make_durable() first
    kStaleRecord, // clear_records() first
    kUnknown,     // not in memory, or not the caller's
    kBound,       // to a session: it has no time for at_least
};

// What a renewal for `ttl` comes to; the expiry that it would have. With the partition's lock held.
Renewal can_renew(LeaseDatabase* database, Ref lease, int64 ttl, int64 at_least, int64* expires);

// After kDone: renews it. Whether it is late.
bool extend_lease(Ref lease, int64 ttl, int64 at_least, int64 expires);

void count_renewal(const LeaseKey& key, bool is_late);

} // namespace interlock

// Records broken leases.
#pragma once

#include "lease/lease_table.h"

namespace interlock::lease {

struct BrokenLease {
    LeaseKey key;
    int64 token;
    int64 expires;
    const char* holder;
    const char* reason;
    List* pinners; // processes that are terminated
};

// Adds a row to interlock.lease_audit, in the caller's transaction.
void audit_break(const BrokenLease& broken);

} // namespace interlock::lease

// All locks of the server at one moment, for views.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

struct LockStatus {
    const LockInstanceData* first;
    int count;
    List* prepared; // the locks of prepared transactions on their own transaction IDs

    const LockInstanceData* begin() const { return first; }
    const LockInstanceData* end() const { return first + count; }
};

LockStatus lock_status();

// The ID of the prepared transaction that holds the lock, as in pg_prepared_xacts.
TransactionId prepared_transaction(const LockStatus& status, const LockInstanceData& lock);

// The role of a process, or InvalidOid if the process is gone.
Oid role_of_process(int pid);

} // namespace interlock::inline server

// Taking one named lock, waiting until a deadline if need be.
#pragma once

#include "key_lock/hold.h"
#include "server/deadline.h"

namespace interlock {

struct LockRequest {
    LockName name;
    LOCKMODE mode;
};

enum class Grant { kAtOnce, kAfterWaiting, kRefused };

// Takes the lock. When it is refused, *error tells why: null when the deadline had passed before
// any wait, else the error that ended the wait, in the caller's memory context and with nothing of
// the transaction lost. Errors and log lines of the wait name the lock in their context.
//
// A session lock that is granted in the moment in which the wait times out is granted: the server
// reports the timeout and keeps the lock.
Grant acquire(const LockRequest& request, LockScope scope, const Deadline& deadline,
              ErrorData** error);

// Gives one take back; false when there is none.
bool give_back(const LockRequest& request, LockScope scope);

// Takes a mode that what is held covers: never waits, even behind others in the queue.
void take_covered(NamedLock* lock, LOCKMODE mode, LockScope scope);

} // namespace interlock

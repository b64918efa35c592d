// Taking one named lock, waiting until a deadline if need be.
#pragma once

#include "key_lock/hold.h"
#include "server/deadline.h"

namespace interlock::key_lock {

struct LockRequest {
    LockName name;
    LOCKMODE mode;
};

enum class Grant { kAtOnce, kAfterWaiting, kRefused };

// Acquires the lock. When that fails, *error has the reason: null when the deadline had passed
// before any wait, else the error that ended the wait, in the caller's memory context. The
// transaction goes on. Errors and log lines of the wait name the lock in their context.
//
// A session lock that is granted in the moment in which the wait times out is granted: the server
// reports the timeout and keeps the lock.
Grant acquire(const LockRequest& request, LockScope scope, const Deadline& deadline,
              ErrorData** error);

// Releases it once; false when it is not held.
bool give_back(const LockRequest& request, LockScope scope);

// Acquires a mode that the held modes cover: never waits, even behind others in the queue.
void take_covered(NamedLock* lock, LOCKMODE mode, LockScope scope);

} // namespace interlock::key_lock

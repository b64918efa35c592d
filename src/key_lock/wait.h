// Takes one named lock, and waits until a deadline if needed.
#pragma once

#include "key_lock/hold.h"
#include "server/deadline.h"

namespace interlock::key_lock {

struct LockRequest {
    LockName name;
    LOCKMODE mode;
};

enum class Grant { kAtOnce, kAfterWaiting, kRefused };

// Acquires the lock. If that fails, *error has the reason, in the caller's memory context: the
// error that ended the wait, or null if the deadline had passed before any wait. The transaction
// can continue. The CONTEXT of errors and log lines names the lock.
//
// A session lock can be granted at the moment when the wait times out. Then the server reports the
// timeout and keeps the lock. It counts as granted.
Grant acquire(const LockRequest& request, LockScope scope, const Deadline& deadline,
              ErrorData** error);

// Releases the lock one time. Returns false if it is not held.
bool give_back(const LockRequest& request, LockScope scope);

// Acquires a mode that the held modes cover. Never waits, even if others wait in the queue.
void take_covered(NamedLock* lock, LOCKMODE mode, LockScope scope);

} // namespace interlock::key_lock

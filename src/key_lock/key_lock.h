// Key locks: locks on names that need not be rows, taken together, in one order, until one
// deadline.
//
// All keys of a call are taken in the order of their bytes, whatever order they were given in, so
// that two calls never deadlock. A key with '/' is a path: its ancestors get the intent mode, so
// that a path excludes itself, its ancestors and its descendants, and siblings run in parallel.
//
// Locks are the server's own, and so are their deadlock detection, lock_timeout and fairness: a
// request never overtakes one that waits and excludes it. Transaction locks end with the
// (sub)transaction that took them, session locks with unlock_keys or the session. Isolation levels
// make no difference: take the locks before the first query under REPEATABLE READ and above, whose
// snapshot is older than what the lock waited for.
#pragma once

#include "key_lock/wait.h"

namespace interlock::key_lock {

// Reports a transaction that takes a key, or an application lock, out of order, as
// interlock.lock_order says: 55000 or a warning. The requests are of one space. Only for those that
// may wait: others cannot deadlock.
void check_lock_order(const LockRequest* requests, int count);

void define_key_lock_settings();

} // namespace interlock::key_lock

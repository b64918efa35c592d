// Key locks: locks on names that need not be rows. Several keys are taken together, in one order,
// until one deadline.
//
// All keys of a call are taken in the order of their bytes, whatever their order in the call is. So
// two calls never deadlock. A key with '/' is a path. Its ancestors are locked in the intent mode.
// So a path excludes itself, its ancestors and its descendants, and siblings do not wait for each
// other.
//
// The locks are locks of the server, with its deadlock detection, lock_timeout and fairness: a
// request never overtakes a waiting request that it conflicts with. Transaction locks end with the
// transaction or subtransaction that took them. Session locks end by unlock_keys or with the
// session. Isolation levels make no difference. Under REPEATABLE READ and above take the locks
// before the first query, because its snapshot would be older than the changes that the lock waited
// for.
#pragma once

#include "key_lock/wait.h"

namespace interlock::key_lock {

// Reports a transaction that takes keys or application locks out of order, by 55000 or a warning,
// as interlock.lock_order says. The requests belong to one space. Only to be called for requests
// that may wait, because others cannot deadlock.
void check_lock_order(const LockRequest* requests, int count);

void define_key_lock_settings();

} // namespace interlock::key_lock

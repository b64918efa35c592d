// A further key of a call that has others already, and the keys of one call in their order.
#pragma once

#include "lease/lease.h"

namespace interlock {

// Level by level, so that a key comes right before its descendants, and keys that exclude each
// other are next to each other in every call: two calls never wait for each other.
int compare_keys(const LeaseKey& left, const LeaseKey& right);

bool is_ancestor(const LeaseKey& key, const LeaseKey& other);
bool are_related(const LeaseKey& key, const LeaseKey& other); // the same, or one above the other

// Puts the waiter, which is the last one in its queue, before those that wait for a path above both
// its key and one that its call has, and before those behind them; all keep their order.
//
// Else calls could wait for each other. Somebody who waits for a lease of a call, and whom another
// call waits for in the end at a later key, is behind a waiter for a path above both; and that is
// above all keys between them. So a call that waits behind somebody does so only for a lease of a
// call that is further in the order of keys, as it does where it waits for a lease itself. The mode
// of the path above makes no difference: a shared one may wait for another call, which waits for
// this one.
void stand_before_those_above(LeaseWaiter* waiter, const LeaseRequest& request);

} // namespace interlock

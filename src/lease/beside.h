// A further key of a call that has others already, and the keys of one call in their order.
#pragma once

#include "lease/lease.h"

namespace interlock {

// Level by level, so that a key comes right before its descendants, and keys that exclude each
// other are next to each other in every call: two calls never wait for each other.
int compare_keys(const LeaseKey& left, const LeaseKey& right);

bool is_ancestor(const LeaseKey& key, const LeaseKey& other);
bool are_related(const LeaseKey& key, const LeaseKey& other); // the same, or one above the other

// Puts the waiter, which is the last one in its queue, before those that wait for a lease of its
// call, or behind others that do: it would wait for itself. They are put behind those that do not,
// which they do not exclude; else all keep their order.
void stand_before_waiting_for_call(LeaseWaiter* waiter, const LeaseRequest& request);

} // namespace interlock

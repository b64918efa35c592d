// The role of a lease: only members of the role that acquired it can renew, release or assert it,
// or see its token.
#pragma once

#include "lease/database.h"
#include "server/caller.h"

namespace interlock::lease {

// The role to which the token was granted before a crash, if the caller acts for it: its own, that
// of the session, or one of the first eight that were granted to these; InvalidOid: none of them,
// or there were too many wrong tokens. Only the token is left of the lease. It shows whether it was
// granted to a given role, not to which one. With no lock held.
Oid role_of_token(LeaseDatabase* database, const LeaseKey& key, int64 token);

// Runs body(Ref) under the partition's lock; 0: there is no lease with that token, or it is not the
// caller's, and then there is no lock. The caller must not be able to distinguish the two.
template <typename Body>
void with_own_lease(const LeaseKey& key, int64 token, LWLockMode mode, Body&& body) {
    LWLock* lock = partition_lock(key.partition);
    for (Oid trusted = GetUserId();;) {
        LWLockAcquire(lock, mode);
        Ref lease = find_lease(find_node(key), token);
        Oid role = lease == 0 ? trusted : lease_at(lease)->role;
        if (role == trusted)
            body(lease);
        LWLockRelease(lock);
        if (role == trusted)
            return;
        if (!acts_for(role)) {
            body(Ref{0});
            return;
        }
        trusted = role; // a token is of one grant, and so the role's as long as it is there
    }
}

} // namespace interlock::lease

// The role of a lease. Only members of the role that acquired it can renew, release or assert it,
// or see its token.
#pragma once

#include "lease/database.h"
#include "server/caller.h"

namespace interlock::lease {

// The role to which the token was granted before a crash, if the caller acts for it. It tries the
// caller's own role, the session's role, and the first eight roles granted to these. InvalidOid if
// it is none of them, or after too many wrong tokens. Only the token is left of the lease. It shows
// whether it was granted to a given role, and not to which role. No lock must be held.
Oid role_of_token(LeaseDatabase* database, const LeaseKey& key, int64 token);

// Runs body(Ref) under the partition's lock. Ref 0: there is no lease with that token, or the lease
// belongs to another role. In the second case the partition's lock is not held. The caller of the
// SQL function must not be able to distinguish the two cases.
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
        trusted = role; // a token belongs to one grant, so the role stays the same
    }
}

} // namespace interlock::lease

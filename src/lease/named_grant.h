// The last lease that this session was granted on a key under a holder's name.
//
// A name is no proof, because several clients can use it. If a session has lost its own lease, it
// must not release or renew by the name a lease that was granted to its successor.
#pragma once

#include "lease/database.h"

namespace interlock::lease {

// To be called after a lease was granted to this session or resumed by it. A session remembers
// about a thousand names.
void note_named_grant(const LeaseKey& key, Oid role, std::string_view holder, int64 token);

// The token of this session's last lease under that name, if that lease is lost or still held.
// Leases under the name with a higher token do not belong to this session. Otherwise the highest
// number: the session has had no such lease, or has released it. No lock must be held.
int64 last_named_token(LeaseDatabase* database, const LeaseKey& key, std::string_view holder);

} // namespace interlock::lease

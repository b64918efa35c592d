// The last lease that this session was granted on a key under a holder's name.
//
// Names are no proof: several clients can use one. A session whose own lease was lost must not
// release, or renew, by the name what was granted to its successor.
#pragma once

#include "lease/database.h"

namespace interlock::lease {

// After a grant to this session, or a lease that it has resumed. A session remembers about a
// thousand names.
void note_named_grant(const LeaseKey& key, Oid role, std::string_view holder, int64 token);

// Leases of that name with a higher token are not this session's: its own was lost, or is held
// still. The highest number if that is not known, or if its own was released. With no lock held.
int64 last_named_token(LeaseDatabase* database, const LeaseKey& key, std::string_view holder);

} // namespace interlock::lease

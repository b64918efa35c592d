// The roles for which the caller acts.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// The role that has opened the session, for which the caller acts also after SET ROLE, as in pools;
// InvalidOid in functions that run with the rights of another role, such as SECURITY DEFINER and
// those of indexes: these do not get what is the session's.
Oid session_role();

// Whether the caller acts for the role: the current or the session's role is a member of it. Reads
// catalogs, and may raise an error: not with a lock held.
bool acts_for(Oid role);

} // namespace interlock::inline server

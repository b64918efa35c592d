// The roles for which the caller acts.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// The role that opened the session. The caller acts for it also after SET ROLE, as connection pools
// use it. Returns InvalidOid in a function that runs with the rights of another role, such as a
// SECURITY DEFINER function or a function of an index. Such code gets no rights of the session.
Oid session_role();

// Whether the caller acts for `role`: the current role or the session's role is a member of it.
// Reads catalogs and may raise an error, so it must not be called while a lock is held.
bool acts_for(Oid role);

} // namespace interlock::inline server

// Grants of scopes. Members of the roles to which a scope is granted share its keys. The functions
// access interlock.idempotency with the rights of its owner (idempotency/access.h), so callers need
// no privilege on it.
//
// Scopes are granted to roles by name, like writers (ownership/writer.h). Scope '*' means all
// scopes, and role 'public' means all roles. Superusers need no grant.
#pragma once

#include "server/server.h"

namespace interlock::idempotency {

// Whether the current user may use the scope, as of the last commit, whatever the transaction's
// snapshot shows.
bool may_use_scope(Datum scope);

// Raises 42501 unless the current user may use the scope. The hint is the statement that grants it.
void require_scope(Datum scope);

// Runs body(), which may wait for other sessions, and checks the grant before and after. If the
// second check raises, the error undoes what body() did.
template <typename Body>
void using_scope(Datum scope, Body&& body) {
    require_scope(scope);
    body();
    require_scope(scope);
}

} // namespace interlock::idempotency

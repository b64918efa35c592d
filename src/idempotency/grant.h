// Grants of scopes: members of the roles to which a scope was granted share its keys. The verbs use
// interlock.idempotency with the rights of its owner (idempotency/access.h), so that callers need
// none on it.
//
// Grants are of roles by name, as those of writers (ownership/writer.h); scope '*' is all scopes,
// and role 'public' everybody. Superusers need none.
#pragma once

#include "server/server.h"

namespace interlock::idempotency {

// As of the last commit, whatever the transaction's snapshot shows.
bool may_use_scope(Datum scope);

// Raises 42501 with the statement that grants the scope to the current user.
void require_scope(Datum scope);

// Runs body(), which may wait for other sessions. The grant is checked again afterwards, and an
// error undoes what body() did.
template <typename Body>
void using_scope(Datum scope, Body&& body) {
    require_scope(scope);
    body();
    require_scope(scope);
}

} // namespace interlock::idempotency

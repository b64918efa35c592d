// Who may use the keys of a scope: members of the roles that it was granted to, which share them.
// The verbs reach interlock.idempotency with the rights of its owner (idempotency/access.h), so
// that nobody else needs any on it.
//
// Grants are of roles by name, as those of writers (ownership/writer.h); scope '*' is all scopes,
// and role 'public' everybody. Superusers need none.
#pragma once

#include "server/server.h"

namespace interlock {

// As the last commit has it, whatever the transaction's snapshot shows.
bool may_use_scope(Datum scope);

// Raises 42501 with the statement that grants the scope to the current user.
void require_scope(Datum scope);

// Runs body(), which may wait for other sessions: what was granted before must be so afterwards,
// else what was done or read is undone by the error.
template <typename Body>
void using_scope(Datum scope, Body&& body) {
    require_scope(scope);
    body();
    require_scope(scope);
}

} // namespace interlock

// The functions for idempotency access interlock.idempotency with the rights of its owner, for
// callers with a grant of the scope (idempotency/grant.h). They evaluate their arguments before
// that, and run_once runs its command outside of it.
//
// So row security does not apply: a policy on the table neither hides nor protects a key from these
// functions. Scopes do that.
#pragma once

#include "execution/unmodified.h"
#include "table/restricted.h"

namespace interlock::idempotency {

extern const OwnTable kIdempotencyKeys;

// The facet in which runs_only_ours() caches its result.
extern int access_facet;

// Whether reading and writing the table runs only code of the server and of this extension. Only
// the table itself is checked.
bool runs_only_ours(Relation rel, const TableInfo* info);

// Runs body(), which reads or writes the open table, with the rights of its owner. If the table has
// other code, body() and that code run restricted. If the caller is a superuser, they run with the
// caller's rights instead. Raises 42501 if a trigger belongs to another role
// (refuse_untrusted_triggers()).
template <typename Body>
void as_owner_of_keys(Relation rel, const TableInfo* info, Body&& body) {
    Oid owner = rel->rd_rel->relowner;
    if (runs_only_ours(rel, info)) {
        as_user(owner, SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS, body);
        return;
    }
    refuse_untrusted_triggers(rel, TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE);
    if (superuser_arg(GetUserId()))
        body();
    else
        as_restricted(owner, SECURITY_NOFORCE_RLS, body);
}

// Raises 42P01 if the table does not exist.
Relation open_keys(LOCKMODE mode);

// Opens the table, and runs body(rel, info) as as_owner_of_keys() does. The lock stays. The
// metadata has the original columns (unmodified_info()).
template <typename Body>
void with_keys(LOCKMODE mode, Body&& body) {
    Relation rel = open_keys(mode);
    const TableInfo* info = table_info(rel);
    as_owner_of_keys(rel, info, [&] { body(rel, unmodified_info(kIdempotencyKeys, info)); });
    close_table(rel);
}

} // namespace interlock::idempotency

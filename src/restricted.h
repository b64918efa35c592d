// Running code that strangers wrote: the triggers, index functions, policies, casts and checks of a
// table that the caller never named. They must not get the caller's rights, and leave nothing
// behind that he would run into later.
#pragma once

#include "server.h"

#include "scope.h"

namespace interlock {

// Runs body() with `user`'s rights in a security-restricted operation, as REINDEX and ANALYZE do
// it: no SET ROLE, temporary tables, prepared statements, LISTEN, held cursors or deferred
// triggers. search_path is pg_catalog, pg_temp, and no setting made inside outlives it, not even
// one for the session. `flags` are further SECURITY_* bits.
template <typename Body>
void as_restricted(Oid user, int flags, Body&& body) {
    as_user(user, SECURITY_RESTRICTED_OPERATION | flags, [&] {
        int nest = NewGUCNestLevel();
        (void)set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
                                GUC_ACTION_SAVE, true, 0, false);
        body();
        AtEOXact_GUC(false, nest);
    });
}

// Raises 42501 when a deletion from the table would run the code of others with the rights of the
// owner, who may be a superuser.
void refuse_strangers(Relation rel);

// Runs body(), which deletes from the table, as its owner, past its policies and restricted; raises
// 42501 when that would run the code of others.
template <typename Body>
void deleting_as_owner(Oid table, Body&& body) {
    Relation rel = table_open(table, RowExclusiveLock);
    refuse_strangers(rel);
    as_restricted(rel->rd_rel->relowner, SECURITY_NOFORCE_RLS, body);
    table_close(rel, NoLock);
}

// Closes the cursors that the current subtransaction opened. A stranger could close one of the
// caller's and open another under its name, whose query the caller would then run.
void close_new_cursors();

} // namespace interlock

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

// Closes the cursors that the current subtransaction opened. A stranger could close one of the
// caller's and open another under its name, whose query the caller would then run.
void close_new_cursors();

} // namespace interlock

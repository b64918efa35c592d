// Running untrusted code: the triggers, index functions, policies, casts and checks of a table that
// the caller has not named. It must not get the caller's rights, and must leave nothing behind in
// the caller's session.
#pragma once

#include "server/server.h"

#include "server/scope.h"
#include "server/subtransaction.h"
#include "table/name.h"
#include "table/relation.h"

namespace interlock::inline table {

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

// Closes the cursors that the current subtransaction opened.
void close_new_cursors();

// As as_restricted. Code of `user` could also close a cursor of the caller, and open another under
// its name, whose query the caller would then run: those that it opens are closed. For functions
// that run the code of a table without a write by their caller. A caller that writes runs the
// triggers of the table with its own rights in any case.
template <typename Body>
void as_untrusted(Oid user, int flags, Body&& body) {
    ErrorData* error = attempt([&] {
        as_restricted(user, flags, body);
        close_new_cursors();
    });
    if (error != nullptr)
        ReThrowError(error);
}

// Runs body(), a part of configuring the table that runs its code: statements on the rows fire its
// triggers and plan the expressions of its indexes, and reading a value calls the checks of a
// domain. With the rights of the table's owner, also when an administrator calls, and past policies
// as the owner.
template <typename Body>
void as_configuring_owner(Oid relid, Body&& body) {
    Oid owner = owner_of_table(relid);
    if (owner == GetUserId())
        body();
    else
        as_untrusted(owner, SECURITY_NOFORCE_RLS, body);
}

// Raises 42501 when a deletion (TRIGGER_TYPE_DELETE) or an INSERT would run the code of others with
// the rights of the table's owner, who may be a superuser.
void refuse_untrusted_triggers(Relation rel, int16 event);

// Runs body(), which does `event` to the open table, as its owner, past its policies and
// restricted; raises 42501 when that would run the code of others. Closes the table.
template <typename Body>
void writing_as_owner(Relation rel, int16 event, Body&& body) {
    refuse_untrusted_triggers(rel, event);
    as_restricted(rel->rd_rel->relowner, SECURITY_NOFORCE_RLS, body);
    table_close(rel, NoLock);
}

// The same for a body that deletes, which may be for any caller, from many tables.
template <typename Body>
void deleting_as_owner(Relation rel, Body&& body) {
    refuse_untrusted_triggers(rel, TRIGGER_TYPE_DELETE);
    as_untrusted(rel->rd_rel->relowner, SECURITY_NOFORCE_RLS, body);
    table_close(rel, NoLock);
}

template <typename Body>
void deleting_as_owner(Oid table, Body&& body) {
    deleting_as_owner(table_open(table, RowExclusiveLock), body);
}

// Whether the server's messages about rows of the table may be shown to the user.
bool may_read_all(Relation rel, Oid user);

// Raises the current error again, in `context`, without the values of a row that the server has put
// into it. They are in the DETAIL when a constraint refuses the row, and anywhere when an
// expression of the owner fails. The server log has them.
[[noreturn]] void raise_without_row(MemoryContext context, const char* table);

// Runs body(), which writes to the table as its owner, for a user that may not read all of it.
template <typename Body>
pg_noinline void hiding_row(Relation rel, Body&& body) {
    static_assert(kIsPlainBody<Body>);
    MemoryContext context = CurrentMemoryContext;
    const char* table = pstrdup(RelationGetRelationName(rel));
    PG_TRY();
    { body(); }
    PG_CATCH();
    { raise_without_row(context, table); }
    PG_END_TRY();
}

// Runs a statement that does `event` (TRIGGER_TYPE_INSERT and its like) to a table of the
// extension, as its owner and restricted; returns the number of rows. 42501 when a trigger function
// of another role would get the owner's rights.
uint64 write_own_table(const char* table, int16 event, const char* statement, int count, Oid* types,
                       Datum* values, const bool* nulls = nullptr);

} // namespace interlock::inline table

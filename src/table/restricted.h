// Runs untrusted code: the triggers, index functions, policies, casts and checks of a table that
// the caller has not named. Such code must not get the caller's rights, and must leave nothing in
// the caller's session.
#pragma once

#include "server/server.h"

#include "server/scope.h"
#include "server/subtransaction.h"
#include "table/name.h"
#include "table/relation.h"

namespace interlock::inline table {

// Runs body() with the rights of `user` in a security-restricted operation, as REINDEX and ANALYZE
// do. There is no SET ROLE, and there are no temporary tables, prepared statements, LISTEN, held
// cursors or deferred triggers. search_path is pg_catalog, pg_temp. No setting made inside
// survives, not even a setting of the session. `flags` are further SECURITY_* bits.
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

// As as_restricted(), for functions that run the code of a table although their caller does not
// write it. It also closes cursors that the code has opened. Otherwise code of `user` could close a
// cursor of the caller and open another under its name, and the caller would run that query. A
// caller that writes a table runs its triggers with its own rights in any case.
template <typename Body>
void as_untrusted(Oid user, int flags, Body&& body) {
    ErrorData* error = attempt([&] {
        as_restricted(user, flags, body);
        close_new_cursors();
    });
    if (error != nullptr)
        ReThrowError(error);
}

// Runs body(), a part of configuring the table that can run the table's code. Statements on rows
// fire triggers and plan index expressions, and reading a value calls the checks of a domain. It
// runs with the rights of the table's owner, also if an administrator calls. Row security does not
// apply.
template <typename Body>
void as_configuring_owner(Oid relid, Body&& body) {
    Oid owner = owner_of_table(relid);
    if (owner == GetUserId())
        body();
    else
        as_untrusted(owner, SECURITY_NOFORCE_RLS, body);
}

// Raises 42501 if one of these events (TRIGGER_TYPE_DELETE and so on) would run code of other roles
// with the rights of the table's owner, who may be a superuser.
void refuse_untrusted_triggers(Relation rel, int16 events);

// Runs body(), which does `event` to the open table, as the table's owner, restricted and without
// row security. Raises 42501 if that would run code of other roles. Closes the table.
template <typename Body>
void writing_as_owner(Relation rel, int16 event, Body&& body) {
    refuse_untrusted_triggers(rel, event);
    as_restricted(rel->rd_rel->relowner, SECURITY_NOFORCE_RLS, body);
    table_close(rel, NoLock);
}

// The same for a body that deletes rows from any number of tables for any caller.
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

// Raises the current error again, in `context`, without the values of a row. The server puts such
// values into DETAIL if a constraint refuses the row, and anywhere if an expression of the owner
// fails. The server log has them.
[[noreturn]] void raise_without_row(MemoryContext context, const char* table);

// Runs body(), which writes to the table as its owner, for a user that may not read the whole
// table. Errors are raised without the values of the row.
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

// Runs a statement that does `event` (such as TRIGGER_TYPE_INSERT) to a table of the extension, as
// its owner and restricted. Returns the number of rows. Raises 42501 if a trigger function of
// another role would get the owner's rights.
uint64 write_own_table(const char* table, int16 event, const char* statement, int count, Oid* types,
                       Datum* values, const bool* nulls = nullptr);

} // namespace interlock::inline table

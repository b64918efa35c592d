// The verbs of idempotency use interlock.idempotency with the rights of its owner, for callers with
// a grant of the scope (idempotency/grant.h). Arguments are evaluated before, and run_once runs its
// command outside of this.
//
// So row security does not apply: a policy on the table neither hides nor protects a key from the
// verbs. Scopes do that.
#pragma once

#include "execution/unmodified.h"
#include "table/restricted.h"

namespace interlock::idempotency {

extern const OwnTable kIdempotencyKeys;
extern const OwnTable kFirstIdempotencyKeys; // of SQL before 0.10.0

// The one of them that the table has in this database.
const OwnTable& definition_of_keys(const TableInfo* info);

// Whether it has the columns since 0.10.0, of what with_keys gives.
bool has_all_columns(const TableInfo* info);

// The place of the answer among the parts of the metadata.
extern int access_part;

// Whether reading the table and writing its rows runs only the server's own code, as far as the
// table is concerned.
bool runs_only_ours(Relation rel, const TableInfo* info);

// Runs body(), which reads or writes the open table, with the rights of its owner. Where code is on
// the table that is not ours, that code runs restricted, or for superusers with their own rights;
// 42501 when it is another role's (refuse_untrusted_triggers).
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

// Raises 42P01 when it is not there.
Relation open_keys(LOCKMODE mode);

// Raises 42703 when it lacks them: its owner has dropped one.
void require_all_columns(const TableInfo* info);

// Opens the table for body(rel, info), which reads or writes its rows, and does the same. Its lock
// stays. The metadata has the original columns (unmodified_info).
template <typename Body>
void with_keys(LOCKMODE mode, Body&& body) {
    Relation rel = open_keys(mode);
    const TableInfo* info = table_info(rel);
    as_owner_of_keys(rel, info,
                     [&] { body(rel, unmodified_info(definition_of_keys(info), info)); });
    close_table(rel);
}

} // namespace interlock::idempotency

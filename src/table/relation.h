// Opening tables for the verbs, and their cached metadata.
#pragma once

#include "table/column.h"
#include "table/info.h"
#include "table/key_index.h"
#include "table/name.h"
#include "table/trigger.h"

namespace interlock::inline table {

void initialize_relation_cache();

// The metadata of an open relation. The pointer stays valid until the end of the transaction,
// though a change of the relation may make a later call return new info.
const TableInfo* table_info(Relation rel);

// The cached metadata if it is still valid, else null: for callers that have not opened the
// relation.
const TableInfo* cached_table_info(Oid relid);

// Opens a table a verb may write: an ordinary or partitioned table, not a catalog. Raises 22004 or
// 42809, 42P01 before it locks anything when there is no such table, and 42501 when the caller may
// neither update nor delete (for AccessShareLock: read) any of it: before it locks anything, and
// again when that has changed while it waited. The lock stays until the end of the transaction.
Relation open_table(Oid relid, LOCKMODE mode);

// As open_table, for callers who have one of these privileges on any of it.
Relation open_table(Oid relid, LOCKMODE mode, AclMode any_of);

// As open_table, for a verb that configures the table: only its owner may (42501), and not in
// parallel mode (25000) unless it only reads.
Relation open_own_table(Oid relid, LOCKMODE mode);

// The checks of open_table for a caller that does not open it: nothing is locked or waited for.
void check_table(Oid relid, AclMode any_of);

// Whether the current user has one of these privileges on the table or on any of its columns; false
// for a table that is gone. Nothing is locked.
bool has_any_privilege(Oid relid, AclMode any_of);

// Whether views of what is configured show the table to the current user: who has some privilege on
// it or on a column of it. Not a temporary one of another session. Likewise.
constexpr AclMode kAnyOfTable =
    ACL_SELECT | ACL_INSERT | ACL_UPDATE | ACL_DELETE | ACL_TRUNCATE | ACL_REFERENCES | ACL_TRIGGER;
bool may_see_table(Oid relid);

// Whether a view may show the current user what is counted of the table: SELECT, or all statistics.
// Likewise.
bool may_see_counts(Oid relid);

// Closes the relation and keeps its lock.
inline void close_table(Relation rel) { table_close(rel, NoLock); }

} // namespace interlock::inline table

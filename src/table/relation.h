// Opens tables for SQL functions, and caches the metadata of tables.
#pragma once

#include "table/column.h"
#include "table/info.h"
#include "table/key_index.h"
#include "table/name.h"
#include "table/trigger.h"

namespace interlock::inline table {

void initialize_relation_cache();

// The metadata of an open relation. The pointer stays valid until the end of the transaction. If
// the relation changes, a later call may return new metadata.
const TableInfo* table_info(Relation rel);

// The cached metadata if it is still valid, otherwise null. For callers that have not opened the
// relation.
const TableInfo* cached_table_info(Oid relid);

// Removes the metadata that is no longer valid. Most of it is of tables that were dropped, for
// which nobody would ask again. Called at the end of each transaction. Returns whether the
// transaction has seen a change of a table in the cache.
bool forget_stale_tables();

// Opens a table that a function may write: an ordinary or partitioned table that is no catalog.
// Raises 22004, 42809, or 42P01 if there is no such table, all of them before it locks anything.
// Raises 42501 if the caller may neither update nor delete any of it (for AccessShareLock: read any
// of it). This is checked before the lock, and after it if the privileges have changed during the
// wait. The lock stays until the end of the transaction.
Relation open_table(Oid relid, LOCKMODE mode);

// As open_table() above, for callers who need one of these privileges on any column.
Relation open_table(Oid relid, LOCKMODE mode, AclMode any_of);

// As open_table(), for a function that configures the table. Raises 42501 if the caller is not the
// owner, and 25000 in parallel mode unless the function only reads.
Relation open_own_table(Oid relid, LOCKMODE mode);

// The checks of open_table() for a caller that does not open the table. It locks nothing and waits
// for nothing.
void check_table(Oid relid, AclMode any_of);

// Whether the current user has one of these privileges on the table or on any of its columns. False
// if the table is gone. It locks nothing.
bool has_any_privilege(Oid relid, AclMode any_of);

// Whether the current user has the right on that column, or on the whole table.
bool has_column_privilege(Oid relid, AttrNumber column, AclMode right);

// Whether views of configurations show the table to the current user, who needs some privilege on
// it or on a column of it. They do not show temporary tables of other sessions. It locks nothing.
constexpr AclMode kAnyOfTable =
    ACL_SELECT | ACL_INSERT | ACL_UPDATE | ACL_DELETE | ACL_TRUNCATE | ACL_REFERENCES | ACL_TRIGGER;
bool may_see_table(Oid relid);

// Whether a view may show the current user the counters of the table. The user needs SELECT or the
// right to read all statistics. It locks nothing.
bool may_see_counts(Oid relid);

// Closes the relation and keeps the lock.
inline void close_table(Relation rel) { table_close(rel, NoLock); }

} // namespace interlock::inline table

// Tables that the extension Citus distributes. Such a table is an empty shell: its rows are in
// shards, which are ordinary tables on one or several servers. A statement on the table is sent to
// the shards. So functions run as statements on it, and what would need the rows on this server is
// refused (table/mechanism.h).
//
// Citus is not linked. Its catalog is read, which has been in pg_catalog since its first release
// and can be written by superusers alone.
#pragma once

#include "server/server.h"

namespace interlock::inline table {

enum class Distribution : uint8 {
    kNone,      // an ordinary table, which a shard is, too
    kSharded,   // each row is in one shard, in one of its copies
    kReference, // all rows are on all servers
};

// What the table is to Citus. kNone without Citus. Citus invalidates the relation cache of a table
// when this changes.
Distribution distribution_of(Oid relid);

// The distributed tables, and the shards of one that are on this server: lists of Oid. A table or
// shard may have been dropped since Citus listed it.
List* distributed_tables();
List* shards_of(Oid relid);

// The table that a table of this server is a shard of. Any other table is its own.
Oid table_of_shard(Oid relid);

// Raises 0A000. `subject` is what does not work for distributed tables.
[[noreturn]] void refuse_distributed(Relation rel, const char* subject, const char* hint);

} // namespace interlock::inline table

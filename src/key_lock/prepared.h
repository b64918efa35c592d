// The names of the keys that prepared transactions hold.
//
// Such a transaction has no process that keeps its names in shared memory, and it outlives a crash.
// So it writes them into a table before it is prepared, and deletes them at once. No snapshot sees
// these rows. Until the transaction is decided a look at undecided rows finds them, over a
// crash and on a promoted standby too; from then on they are dead, however it was decided, and
// vacuum removes them.
#pragma once

#include "key_lock/name.h"

namespace interlock::key_lock {

// Before PREPARE TRANSACTION: stores the name of a key that the transaction holds. The table is
// null while the extension is being dropped.
Relation open_prepared_names();
void store_prepared_name(Relation table, const LockName& name);
void close_prepared_names(Relation table);

struct PreparedName {
    LOCKTAG tag;      // hash key
    const char* name; // null: two transactions hold two names with this tag
    Oid role;         // that prepared the transaction
};

// Those of this database, by tag; null when there is no table.
HTAB* prepared_names();

} // namespace interlock::key_lock

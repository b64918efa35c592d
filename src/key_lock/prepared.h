// The names of the keys that prepared transactions hold.
//
// A prepared transaction has no process that keeps its names in shared memory, and it survives a
// crash. So it writes the names into a table before it is prepared, and deletes them at once. No
// snapshot sees these rows. Until the transaction is committed or rolled back, a scan for undecided
// rows finds them, also after a crash and on a promoted standby. Afterwards these rows are dead in
// either case, and vacuum removes them.
#pragma once

#include "key_lock/name.h"

namespace interlock::key_lock {

// To be called before PREPARE TRANSACTION: stores the name of a key that the transaction holds. The
// table is null while the extension is being dropped.
Relation open_prepared_names();
void store_prepared_name(Relation table, const LockName& name);
void close_prepared_names(Relation table);

struct PreparedName {
    LOCKTAG tag;      // hash key
    const char* name; // null: two transactions hold two names with this tag
    Oid role;         // the role that prepared the transaction
};

// The names in this database, by tag. Null if there is no such table.
HTAB* prepared_names();

} // namespace interlock::key_lock

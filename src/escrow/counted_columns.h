// The columns of a counter's triggers are stored by number, so renames do not matter.
//
// enable_escrow writes the numbers into the arguments and makes the trigger depend on these
// columns. A dump has the arguments but not this dependency. So numbers without the dependency
// belong to another database, and the names are used instead.
#pragma once

#include "table/trigger.h"

namespace interlock::escrow {

struct CountedColumns {
    AttrNumber column;
    int key_count;
    AttrNumber key[INDEX_MAX_KEYS]; // in the order in which a counter has its key values
};

// Reads the numbers from argument `first`, and the names of the key's columns from the arguments
// after it. Returns false if the trigger was not created in this database, or not by enable_escrow.
// Waits for no lock.
bool read_counted_columns(Oid rel, const Trigger* trigger, int first, CountedColumns* columns);

// The argument with the numbers of the column and of the key's columns.
const char* counted_columns_argument(const CountedColumns& columns);

// The current name of the column. Returns false if the column is gone.
bool name_counted_column(Oid rel, const Trigger* trigger, NameData* name);

} // namespace interlock::escrow

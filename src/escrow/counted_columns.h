// The columns that the triggers of a counter are about, by number: no change of a name changes it.
//
// enable_escrow writes the numbers into the arguments and makes the trigger depend on these
// columns. A dump has the arguments and no such dependency, so numbers without it are those of
// another database, and the names count.
#pragma once

#include "table/trigger.h"

namespace interlock::escrow {

struct CountedColumns {
    AttrNumber column;
    int key_count;
    AttrNumber key[INDEX_MAX_KEYS]; // in the order in which a counter has their values
};

// The numbers are argument `first`, the names of the key's columns the arguments after it. False:
// the trigger was not made in this database, or not by enable_escrow. Waits for no lock.
bool read_counted_columns(Oid rel, const Trigger* trigger, int first, CountedColumns* columns);

// The argument that has the numbers: of the column, and of the key's columns.
const char* counted_columns_argument(const CountedColumns& columns);

// The name of the column now; false where it is gone.
bool name_counted_column(Oid rel, const Trigger* trigger, NameData* name);

} // namespace interlock::escrow

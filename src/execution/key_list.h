// The keys of several rows, as a verb is given them.
#pragma once

#include "table/key.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::inline execution {

// Distinct, and in the order of the table's key, whichever keys name the rows: two calls that go
// through their rows in this order never deadlock. Rows that are not there, or whose key the caller
// may not SELECT, come in the order of what names them.
struct KeyList {
    Key* keys;
    int count;
    const UniqueKey* by; // of all keys; null: they differ, or there are none
};

// Argument n, named "keys": an array of any type, a JSON array, or either as text. Raises 22004 for
// null, also in it, 22023 when it is no array, 55000 when the table has no key, and what
// parse_key() raises.
KeyList key_list_argument(const Arguments& arguments, int n, Relation rel, const TableInfo* info);

} // namespace interlock::inline execution

// The keys of several rows, as an argument of a function.
#pragma once

#include "table/key.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::inline execution {

// Distinct keys in the order of the table's key, whichever keys name the rows. Two calls that go
// through their rows in this order never deadlock. Rows that do not exist, or whose key the caller
// may not SELECT, are ordered by the keys that were passed.
struct KeyList {
    Key* keys;
    int count;
    const UniqueKey* by; // the key that all use; null: they differ, or there are none
};

// Argument n, named "keys": an array of any type, a JSON array, or either of these as text. Raises
// 22004 for null or a null element, 22023 if it is no array, 55000 if the table has no key, and the
// errors of parse_key().
KeyList key_list_argument(const Arguments& arguments, int n, Relation rel, const TableInfo* info);

} // namespace interlock::inline execution

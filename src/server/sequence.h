// Sequences that belong to a column, and their values.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// The sequence that belongs to the column, InvalidOid if none.
Oid owned_sequence(Oid relid, AttrNumber column);

// The last value that was returned, 0 when none was. Raises 42P01 or 42809 before it locks
// anything; the lock stays, as that of nextval. To be called with a sequence that may be read.
int64 value_of_sequence(Oid sequence);

// The same; the caller needs SELECT or USAGE (42501).
int64 value_for_reader(Oid sequence);

// The same for a sequence that the caller has not named: false where value_for_reader would raise
// an error, or where the lock is not available at once.
bool read_if_possible(Oid sequence, LOCKMODE mode, int64* value);

} // namespace interlock::inline server

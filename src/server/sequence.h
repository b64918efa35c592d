// Sequences that belong to a column, and their values.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

// The sequence that belongs to the column, or InvalidOid if there is none.
Oid owned_sequence(Oid relid, AttrNumber column);

// The last value that the sequence has returned, or 0 if it has returned none. Raises 42P01 or
// 42809 before it locks anything. The lock stays, as after nextval. The caller must have checked
// that it may read the sequence.
int64 value_of_sequence(Oid sequence);

// The same, but checks that the caller has SELECT or USAGE on the sequence (42501).
int64 value_for_reader(Oid sequence);

// The same for a sequence that the caller has not named. Returns false where value_for_reader()
// would raise an error, and if the lock is not available at once.
bool read_if_possible(Oid sequence, LOCKMODE mode, int64* value);

} // namespace interlock::inline server

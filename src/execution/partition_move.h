// Rows that an UPDATE moves to another partition: the server deletes them in one and inserts them
// into the other.
#pragma once

#include "execution/row_change.h"
#include "table/relation.h"

namespace interlock::inline execution {

// The partition that the update moves the row to; InvalidOid when it stays, or fits nowhere. Runs
// only the code that the server runs to route the row.
Oid new_partition(const RowChange& change);

// Raises 55000 when the update moves the row to a partition where a BEFORE INSERT trigger of others
// fires in this session (table/last_word.h). For our BEFORE UPDATE triggers, once they have checked
// the row.
void refuse_unchecked_move(const RowChange& change);

} // namespace interlock::inline execution

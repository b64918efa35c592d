// Rows that an UPDATE moves to another partition: the server deletes them in one and inserts them
// into the other.
#pragma once

#include "execution/row_change.h"
#include "table/relation.h"

namespace interlock {

// The partitioned table at the top; the table itself when it is no partition.
Oid root_of(Relation rel);

// The partition that the update moves the row to; InvalidOid when it stays, or fits nowhere. Calls
// only what the server calls to route the row.
Oid new_partition(const RowChange& change);

} // namespace interlock

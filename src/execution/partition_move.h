// Rows that an UPDATE moves to another partition. The server deletes such a row in one partition
// and inserts it into the other.
#pragma once

#include "execution/row_change.h"
#include "table/relation.h"

namespace interlock::inline execution {

// The partition to which the update moves the row. InvalidOid if the row stays, or fits into no
// partition. Runs only the code that the server also runs to find the partition.
Oid new_partition(const RowChange& change);

// Raises 55000 if the update moves the row to a partition in which a BEFORE INSERT trigger of
// others fires in this session (table/last_word.h). The extension's BEFORE UPDATE triggers call it
// after they have checked the row.
void refuse_unchecked_move(const RowChange& change);

} // namespace interlock::inline execution

// The floor of a versioned table: the highest version of any row that was deleted.
//
// A row that is deleted and inserted again must not start at a version that clients of the old row
// still hold. A sequence owned by the version column remembers the floor, and new rows start above
// it through the column's default, first_version(sequence). Sequences do not roll back, which here
// is what is wanted: the floor only has to be high enough. TRUNCATE does not raise it, and no row
// raises it beyond half of an integer's range or 2^52, so that there always is a version to start
// at.
#pragma once

#include "relation.h"

namespace interlock {

struct Versioning;

// The sequence that keeps the floor, of the table or of the one it is a partition of; InvalidOid if
// none.
Oid find_floor(Relation rel, const Versioning* versioning);

// Raises the floor to the version of a row that leaves its key.
void note_departure(Relation rel, const RelationFacts* facts, HeapTuple row);

// Creates the sequence and the default. Call without a reference to the table, inside with_spi.
void create_floor(Oid relid, const char* column);

// Drops both, and leaves 1 as the default.
void drop_floor(Oid relid, const char* column, Oid sequence);

} // namespace interlock

// The floor of a versioned table: the highest version of any row that was deleted.
//
// A row that is deleted and inserted again must not start at a version that clients of the old row
// still hold. A sequence owned by the version column stores the floor, and new rows start above it
// through the column's default, first_version(sequence). Sequences do not roll back, which is
// harmless here: the floor only has to be high enough. The default names the sequence as text,
// since tools for schemas create a table before they create a sequence, or without it: then rows
// start at 1. TRUNCATE does not raise it, and no row raises it beyond half of an integer's range or
// 2^52, so that there always is a version to start at.
#pragma once

#include "table/relation.h"

namespace interlock {

struct Versioning;
enum class TokenKind : uint8;

// The sequence that stores the floor, of the table that versions are enabled on; InvalidOid if
// none.
Oid find_floor(const Versioning* versioning);

// Raises the floor to the version of a row that leaves its key.
void note_departure(Relation rel, const TableInfo* info, HeapTuple row);

// Its value now; 0 if there is none.
int64 present_floor(const TableInfo* info);

// The name of the floor in the default of the column; null when that does not call first_version.
const char* floor_name(Oid relid, AttrNumber column);

// The floor that a text means in defaults of the role's tables, as far as the sequences are the
// role's own and the caller may read them; 0 if none. 22023 if it is no name.
int64 own_floor(const char* name, Oid owner);

// Whether the default of any column of the role's tables names it.
bool is_in_default(const char* name, Oid owner);

// The same, of a column that has a floor.
bool means_a_floor(const char* name, Oid owner);

// Whether the column has no sequence of that name with a recorded dependency, or a partition's
// default does not name it, so that create_floor has something to do.
bool lacks_floor(Oid relid, AttrNumber column, const char* named);

// Creates the sequence, if the column has none, and the default, also of partitions. Call without a
// reference to the table, inside with_spi.
void create_floor(Oid relid, const char* column);

// Drops both, and leaves 1 as the default.
void drop_floor(Oid relid, const char* column, Oid sequence);

// --- Inside --------------------------------------------------------------------------------------

// As find_floor, for a table that is not open.
Oid floor_of_column(Oid relid, AttrNumber column);

// Whether create_floor has made the sequence, or has named it, for the default that is there now.
bool is_recorded(Oid relid, AttrNumber column, Oid sequence);

int64 highest_floor(TokenKind kind);

} // namespace interlock

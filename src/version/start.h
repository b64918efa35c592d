// Where the versions of new rows start: above the highest version of any row that was deleted.
//
// A row that is deleted and inserted again must not start at a version that clients of the old row
// still hold. A sequence owned by the version column stores the start, and new rows get the next
// version through the column's default, first_version(sequence). Sequences do not roll back, which
// is harmless here: the start only has to be high enough. The default names the sequence as text,
// since tools for schemas create a table before they create a sequence, or without it: then rows
// start at 1. TRUNCATE does not raise it, and no row raises it beyond half of an integer's range or
// 2^52, so that there always is a version to start at.
#pragma once

#include "table/relation.h"

namespace interlock::version {

struct Versioning;
enum class TokenKind : uint8;

// The sequence that stores the start, of the table that versions are enabled on; InvalidOid if
// none.
Oid find_start(const Versioning* versioning);

// Raises the start to the version of a row that leaves its key.
void note_departure(Relation rel, const TableInfo* info, HeapTuple row);

// Its value now; 0 if there is none.
int64 present_start(const TableInfo* info);

// The name of the sequence in the default of the column; null when that does not call
// first_version.
const char* start_name(Oid relid, AttrNumber column);

// The start that a text in a default means; 0 if no sequence stores one. 22023 if the text is no
// name of a sequence and its schema, 42501 if the caller may not read the sequence.
int64 start_of_name(const char* name);

// Whether the default of any column names it, and whether such a column has a sequence.
bool is_in_default(const char* name);
bool means_a_start(const char* name);

// Whether the column has no sequence of that name with a recorded dependency, or a partition's
// default does not name it, so that create_start has something to do.
bool lacks_start(Oid relid, AttrNumber column, const char* named);

// Creates the sequence, if the column has none, and the default, also of partitions. Call without a
// reference to the table, inside with_spi.
void create_start(Oid relid, const char* column);

// Drops both, and leaves 1 as the default.
void drop_start(Oid relid, const char* column, Oid sequence);

// --- Inside --------------------------------------------------------------------------------------

// As find_start, for a table that is not open.
Oid start_of_column(Oid relid, AttrNumber column);

// Whether create_start has made the sequence, or has named it, for the default that is there now.
bool is_recorded(Oid relid, AttrNumber column, Oid sequence);

int64 highest_start(TokenKind kind);

} // namespace interlock::version

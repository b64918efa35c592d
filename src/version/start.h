// The versions of new rows start above the highest version of any deleted row.
//
// If a row is deleted and inserted again, it must not start at a version that clients of the old
// row still hold. A sequence that the version column owns stores the start. New rows get the next
// version from the column's default, first_version(sequence). Sequences do not roll back. That is
// harmless here, because the start only has to be high enough.
//
// The default names the sequence as text, because schema tools create a table before its sequence
// or without it: then rows start at 1. TRUNCATE does not raise the start. No row raises it above
// half of an integer's range or above 2^52, so that there is always a version to start at.
#pragma once

#include "table/relation.h"

namespace interlock::version {

struct Versioning;
enum class TokenKind : uint8;

// The sequence that stores the start, for the table on which versions are enabled. InvalidOid if
// there is none.
Oid find_start(const Versioning* versioning);

// Raises the start to the version of a row that is deleted or gets another key.
void note_departure(Relation rel, const TableInfo* info, HeapTuple row);

// The current value of the start. 0 if there is none.
int64 present_start(const TableInfo* info);

// The name of the sequence in the column's default. Null if the default does not call
// first_version.
const char* start_name(Oid relid, AttrNumber column);

// The start for the text in a default. 0 if there is no sequence that stores a start. Raises 22023
// if the text is not the name of a sequence with its schema, and 42501 if the caller may not read
// the sequence.
int64 start_of_name(const char* name);

// Whether the default of any column names the sequence, and whether such a column has a sequence.
bool is_in_default(const char* name);
bool means_a_start(const char* name);

// Whether create_start() has something to do: the column has no sequence of that name with a
// recorded dependency, or the default of a partition does not name it.
bool lacks_start(Oid relid, AttrNumber column, const char* named);

// Creates the sequence if the column has none, and the default, also for partitions. Call it inside
// with_spi, without an open reference to the table.
void create_start(Oid relid, const char* column);

// Drops the sequence and its default, and leaves 1 as the default.
void drop_start(Oid relid, const char* column, Oid sequence);

// --- Internal ------------------------------------------------------------------------------------

// As find_start, for a table that is not open.
Oid start_of_column(Oid relid, AttrNumber column);

// Whether create_start() has created or named the sequence for the current default.
bool is_recorded(Oid relid, AttrNumber column, Oid sequence);

int64 highest_start(TokenKind kind);

} // namespace interlock::version

// The audit of what is configured and granted: interlock.configuration_audit.
//
// Each call of a function that configures a table, or grants something, adds a row, in the caller's
// transaction and with the rights of the table's owner: callers can neither forge nor remove rows.
// SQL of a version before 0.10.0 has no such table; then nothing is recorded.
#pragma once

#include "server/arguments.h"
#include "table/mechanism.h"

namespace interlock::inline table {

// A change of a table by a function that was called with these arguments.
struct TableChange {
    Oid relid;
    const char* action; // the name of the function
    const char* table;
    TableSettings before;
};

// The table is open and locked against other changes; record_change afterwards, when it is closed.
TableChange begin_change(const Arguments& arguments, Relation rel);
void record_change(const TableChange& change);

// Any other change: what is null is not recorded.
struct RecordedChange {
    const char* kind;           // grant, configuration
    const char* name = nullptr; // writer, scope, kind of access, key
    const char* table = nullptr;
    const char* grantee = nullptr;
    Jsonb* before = nullptr;
    Jsonb* after = nullptr;
};
void record_change(const Arguments& arguments, const RecordedChange& change);

} // namespace interlock::inline table

// The audit of configuration and grants: interlock.configuration_audit.
//
// Each call of a function that configures a table or grants something adds a row. The row is added
// in the caller's transaction and with the rights of the extension table's owner, so callers can
// neither forge nor remove rows.
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

// To be called while the table is open and locked against other changes. Raises the errors of
// require_enableable() for the called function. record_change() follows
// after the table is closed.
TableChange begin_change(const Arguments& arguments, Relation rel);
void record_change(const TableChange& change);

// Any other change. Members that are null are not recorded.
struct RecordedChange {
    const char* kind;           // grant, configuration, force
    const char* name = nullptr; // writer, scope, kind of access, key
    const char* table = nullptr;
    const char* grantee = nullptr;
    Jsonb* before = nullptr;
    Jsonb* after = nullptr;
};
void record_change(const Arguments& arguments, const RecordedChange& change);

} // namespace interlock::inline table

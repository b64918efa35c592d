// What the functions on one versioned row share: their arguments (rel, key, expected), the write
// that requires that version, and their results and errors.
#pragma once

#include "server/arguments.h"
#include "version/argument.h"
#include "version/update.h"

namespace interlock::version {

struct RowCall {
    Relation rel;
    const TableInfo* info;
    const Versioning* versioning;
    Key key;
    VersionArgument expected;
};

// Reads arguments 0 to 2. Raises the errors of open_table(), require_versioning(), key_argument()
// and expected_version().
RowCall open_call(const Arguments& arguments, LOCKMODE mode = RowExclusiveLock);

// The same, but `expected` may be null: then there must be no such row. The caller then needs
// INSERT on some column, and UPDATE otherwise.
RowCall open_call_or_new(const Arguments& arguments);

// Argument n: new values of columns. The key and the version are refused.
Changes changes_argument(const Arguments& arguments, int n, const RowCall& call);

// Whether the stored version is the expected one, as the caller's type shows it.
bool is_expected(const RowCall& call, int64 stored);

// The attempt of version/update.h with the expected version of the call.
Attempt update_as_called(const RowCall& call, const Changes& changes);
Attempt delete_as_called(const RowCall& call);

// Raises P0002 or IL001 if the row was not written.
void raise_unless_written(const RowCall& call, const Attempt& attempt);

// A result row: (outcome, version, current[, conflicts]). Null members become nulls.
struct Answer {
    const char* outcome;
    const int64* version = nullptr;
    const StoredRow* current = nullptr;
    const Bitmapset* conflicts = nullptr;
    bool is_compared = false; // then no conflicts are an empty array
};

// Return the result and close the table. After a conflict, the result shows the current row.
Datum report(FunctionCallInfo fcinfo, const RowCall& call, const Answer& answer);
Datum report(FunctionCallInfo fcinfo, const RowCall& call, const Attempt& attempt);

} // namespace interlock::version

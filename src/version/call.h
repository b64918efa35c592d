// What the functions on one versioned row share: the arguments (rel, key, expected), the write on
// the condition that the row still has that version, and their results and errors.
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

// Reads the arguments 0 to 2. Raises what open_table(), require_versioning(), key_argument() and
// expected_version() do.
RowCall open_call(const Arguments& arguments, LOCKMODE mode = RowExclusiveLock);

// The same, but null may be expected: there is to be no such row. The caller then needs INSERT on
// some column, and UPDATE otherwise.
RowCall open_call_or_new(const Arguments& arguments);

// Argument n: columns that the caller may set, which the key and the version are not.
Changes changes_argument(const Arguments& arguments, int n, const RowCall& call);

// Whether a version is the expected one, as the caller's type shows it.
bool is_expected(const RowCall& call, int64 stored);

// The attempt of version/update.h, on the version that the caller means.
Attempt update_as_called(const RowCall& call, const Changes& changes);
Attempt delete_as_called(const RowCall& call);

// Raises P0002 or IL001 when the row was not written.
void raise_unless_written(const RowCall& call, const Attempt& attempt);

// A row of results: (outcome, version, current[, conflicts]). Null members become nulls.
struct Answer {
    const char* outcome;
    const int64* version = nullptr;
    const StoredRow* current = nullptr;
    const Bitmapset* conflicts = nullptr;
    bool is_compared = false; // no conflicts are an empty array then
};

// Both close the table. An attempt in conflict shows the row as it is now.
Datum report(FunctionCallInfo fcinfo, const RowCall& call, const Answer& answer);
Datum report(FunctionCallInfo fcinfo, const RowCall& call, const Attempt& attempt);

} // namespace interlock::version

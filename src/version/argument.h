// Versions in the arguments and results of functions: a number, a timestamp with time zone, or
// either as text.
#pragma once

#include "version/version.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::version {

struct VersionArgument {
    Oid type; // INT8OID, TIMESTAMPTZOID or TEXTOID
    int64 token;
    bool is_null = false; // only from expected_version_or_null()
};

// Argument n, named "expected". Raises 22004 for null, and 42804 for a number if versions are times
// or for a time if they are numbers. For a text it raises the errors of the input function.
VersionArgument expected_version(const Arguments& arguments, int n, Relation rel,
                                 const Versioning* versioning);

// The same, but null is allowed. It means that there must be no row.
VersionArgument expected_version_or_null(const Arguments& arguments, int n, Relation rel,
                                         const Versioning* versioning);

// Whether versions of the table can be passed and returned in that type.
inline bool has_versions_as(const Versioning* versioning, Oid type) {
    return type == TEXTOID || is_counter(versioning->kind) == (type == INT8OID);
}

// A version in that type.
Datum version_result(const Versioning* versioning, Oid type, int64 token);

// Whether the stored version looks the same to the caller as the expected one. A timestamp without
// time zone is shown to a caller of timestamptz in the session's zone. When clocks are put forward,
// the hour that is left out is shown as the next hour. So the value that the caller has read may
// not convert back to the stored value.
bool is_shown_as_expected(const Versioning* versioning, const VersionArgument& expected,
                          int64 stored);

} // namespace interlock::version

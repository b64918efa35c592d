// Versions as a caller gives them and gets them back: a number, a timestamp with time zone, or
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
    bool is_null = false; // given by expected_version_or_null() alone
};

// Argument n, named "expected"; 22004 for null, 42804 for a number where versions are times or the
// other way round, and what the input function raises for a text.
VersionArgument expected_version(const Arguments& arguments, int n, Relation rel,
                                 const Versioning* versioning);

// The same, but null is no error: there is to be no row.
VersionArgument expected_version_or_null(const Arguments& arguments, int n, Relation rel,
                                         const Versioning* versioning);

// Whether versions of the table can be given and returned in that type.
inline bool has_versions_as(const Versioning* versioning, Oid type) {
    return type == TEXTOID || is_counter(versioning->kind) == (type == INT8OID);
}

// A version in such a type.
Datum version_result(const Versioning* versioning, Oid type, int64 token);

// Whether the stored version looks the same as the expected one to the caller. A timestamp without
// time zone is shown to a caller of timestamptz in the session's zone: where clocks are put
// forward, the hour that is left out is shown as the next one, so that the value that was read does
// not convert back to the stored one.
bool is_shown_as_expected(const Versioning* versioning, const VersionArgument& expected,
                          int64 stored);

} // namespace interlock::version

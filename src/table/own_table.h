// Tables of the extension, and writing them for callers who have no privilege on them.
#pragma once

#include "server/scope.h"
#include "table/name.h"

namespace interlock::inline table {

// The extension has two schemas. Users call and read what is in the first; trigger functions, what
// views call, and tables of the server alone are in the second.
constexpr const char* kOwnSchema = "interlock";
constexpr const char* kInternalSchema = "interlock_internal";

// These schemas, under whatever names they have now; InvalidOid when the extension is not there.
// Both are cached until a schema is created, renamed or dropped; when they are not, the versions of
// the library and of the extension's SQL are compared (server/library_version.h): 55000.
Oid own_schema();
Oid internal_schema();

// Raises 3F000 when one of them has another name than above. Statements name them, and would find
// what another role has made under that name.
void require_schema_names();

// The table of that name in the first schema, or in the second. Raises 42P01 when it is not there,
// and 3F000 when a schema has another name than the statements on the table.
Oid own_table(const char* name);
Oid internal_table(const char* name);

// The name of a function in the first schema, or of a trigger function, for statements: with the
// schema's present name, since another role can have made a function in a schema of the old one.
char* own_function(const char* name);
char* own_trigger_function_name(const char* name);

// The OID of a trigger function of the extension.
Oid own_trigger_function(const char* name);

// Runs body() with the rights of the table's owner. For statements of our own, in which nothing of
// the caller is evaluated.
template <typename Body>
void as_owner_of(Oid table, Body&& body) {
    as_user(owner_of_table(table), SECURITY_LOCAL_USERID_CHANGE, body);
}

} // namespace interlock::inline table

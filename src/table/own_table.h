// Tables of the extension, and writing them for callers who have no privilege on them.
#pragma once

#include "server/scope.h"
#include "table/name.h"

namespace interlock {

constexpr const char* kOwnSchema = "interlock";

// The schema of the extension, under whatever name it is now; InvalidOid when the extension is not
// there.
Oid own_schema();

// Raises 3F000 when that is not kOwnSchema. Statements name it, and would find what another role
// has made under that name.
void require_schema_name();

// The table of that name in the extension's schema. Raises 42P01 when it is not there, and 3F000
// when the schema has another name than the statements on the table.
Oid own_table(const char* name);

// The name of a function of the extension, for statements: with the schema's present name, since
// another role can have made a function in a schema of the old one.
char* own_function(const char* name);

// The OID of a trigger function of the extension.
Oid own_trigger_function(const char* name);

// Runs body() with the rights of the table's owner. For statements of our own, in which nothing of
// the caller is evaluated.
template <typename Body>
void as_owner_of(Oid table, Body&& body) {
    as_user(owner_of_table(table), SECURITY_LOCAL_USERID_CHANGE, body);
}

} // namespace interlock

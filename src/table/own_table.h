// Tables of the extension, and writing to them for callers who have no privilege on them.
#pragma once

#include "server/scope.h"
#include "table/name.h"

namespace interlock::inline table {

// The extension has two schemas. Users call and read what is in the first. The second has trigger
// functions, the functions that views call, and tables for the library only.
constexpr const char* kOwnSchema = "interlock";
constexpr const char* kInternalSchema = "interlock_internal";

// The OIDs of these schemas, whatever their names are now. InvalidOid if the extension is not
// installed. They are cached until a schema is created, renamed or dropped. When they are read
// again, the versions of the library and of the extension's SQL are compared
// (server/library_version.h), which can raise 55000.
Oid own_schema();
Oid internal_schema();

// Raises 3F000 if one of the schemas was renamed. Statements use the names above, and would find
// objects that another role has created under such a name.
void require_schema_names();

// The table of that name in the first or in the second schema. Raises 42P01 if it does not exist,
// and 3F000 if a schema was renamed.
Oid own_table(const char* name);
Oid internal_table(const char* name);

// The name of a function in the first schema, or of a trigger function, for statements. It has the
// current name of the schema, because another role can have created a function in a schema with the
// old name.
char* own_function(const char* name);
char* own_trigger_function_name(const char* name);

// The OID of a function in the first schema. InvalidOid if there is none with these arguments.
Oid own_function_oid(const char* name, std::initializer_list<Oid> arguments);

// The OID of a trigger function of the extension.
Oid own_trigger_function(const char* name);

// Runs body() with the rights of the table's owner. For statements of the extension that evaluate
// nothing of the caller.
template <typename Body>
void as_owner_of(Oid table, Body&& body) {
    as_user(owner_of_table(table), SECURITY_LOCAL_USERID_CHANGE, body);
}

} // namespace interlock::inline table

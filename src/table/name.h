// Names of tables in SQL text, and facts from the catalogs about tables.
#pragma once

#include "server/server.h"

namespace interlock::inline table {

// schema.table, quoted where needed.
char* qualified_name(Relation rel);
char* qualified_name(Oid relid);

// The same for the DETAIL of an error: of a shard, the table that its writer knows.
char* shown_name(Relation rel);

// The same for hints. The schema of a temporary table is called pg_temp, because its real name
// differs in each session.
char* typed_name(Relation rel);

// For hints: a statement that calls a function of the API with the table as its only argument.
char* call_for(const char* function, Relation rel);

// "OPERATOR(schema.name)" for SQL text.
char* operator_text(Oid operator_oid);

// The cast from a column of that type to its enum, for an operator of enums. A domain over an enum
// needs it, because the parser finds no operator for the domain.
const char* enum_cast(Oid type);

// The name of the table for a statement on its own rows (ONLY). Rows of tables that inherit from it
// are left out: they may have the same keys, and the table's triggers do not fire for them.
char* rows_of(Relation rel);

// The topmost partitioned table, or the table itself if it is no partition.
Oid root_of(Relation rel);

// Owners of a table and of other objects. InvalidOid if the object is gone.
Oid owner_of_table(Oid relid);
Oid owner_of_function(Oid function);
Oid owner_of_schema(Oid schema);

} // namespace interlock::inline table

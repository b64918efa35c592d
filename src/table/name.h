// Facts of the catalogs about tables, and their names in SQL text.
#pragma once

#include "server/server.h"

namespace interlock::inline table {

// schema.table, quoted.
char* qualified_name(Relation rel);
char* qualified_name(Oid relid);

// The same for hints: a temporary table's schema has another name in each session.
char* typed_name(Relation rel);

// For hints: the statement that calls a function of the API with the table alone.
char* call_for(const char* function, Relation rel);

// "OPERATOR(schema.name)" for use in SQL text.
char* operator_text(Oid operator_oid);

// The cast of a column of that type for an operator of enums: the parser finds none for a domain
// over an enum, so the column is cast to the enum.
const char* enum_cast(Oid type);

// The table's name in a statement on its own rows (ONLY). Rows of tables that inherit from it are
// left out: they may have the same keys, and have none of its triggers.
char* rows_of(Relation rel);

// The partitioned table at the top; the table itself when it is no partition.
Oid root_of(Relation rel);

// Owners; InvalidOid when there is no such object any more.
Oid owner_of_table(Oid relid);
Oid owner_of_function(Oid function);
Oid owner_of_schema(Oid schema);

} // namespace interlock::inline table

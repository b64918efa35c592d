// Reads the metadata of a table (table/info.h).
#pragma once

#include "table/info.h"

namespace interlock::inline table {

// The metadata is allocated in its own memory context, a child of the current one. It is not marked
// valid yet, because only the caller knows whether the table has changed meanwhile.
TableInfo* load_table_info(Relation rel);

} // namespace interlock::inline table

// Reading the metadata of a table (table/info.h).
#pragma once

#include "table/info.h"

namespace interlock::inline table {

// In a memory context of its own under the current one; not marked valid yet: the caller knows
// whether the table has changed meanwhile.
TableInfo* load_table_info(Relation rel);

} // namespace interlock::inline table

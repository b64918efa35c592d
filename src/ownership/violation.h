// The DETAIL of IL007.
#pragma once

#include "table/relation.h"

namespace interlock::ownership {

// {table, key, columns, owner, writer}. `key` is JSON. Null for `key`: the caller may not read it.
// Null for `writer`: there is none.
const char* violation_detail(Relation rel, const TableInfo* info, const char* key,
                             const Bitmapset* columns, const char* owner, const char* writer);

} // namespace interlock::ownership

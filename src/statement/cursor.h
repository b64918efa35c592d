// UPDATE and DELETE ... WHERE CURRENT OF.
#pragma once

#include "server/server.h"

namespace interlock::inline statement {

// Whether the running statement has found, by its cursor, the same version of the row that the
// cursor has fetched, and not a newer version of another transaction.
bool is_as_fetched(QueryDesc* query, Oid relid, const ItemPointerData& row);

} // namespace interlock::inline statement

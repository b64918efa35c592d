// The rows whose versions this transaction has asserted and so locked. Any statement may write
// these rows.
//
// They are known by their places. A locked row stays in its place. If the transaction moves it by
// writing it, the row counts as written by this transaction. A rollback to a savepoint releases the
// locks that were acquired after the savepoint, and removes these rows.
#pragma once

#include "server/server.h"

namespace interlock::version {

void note_asserted(Oid relid, const ItemPointerData& row);

bool is_asserted(Oid relid, const ItemPointerData& row);

} // namespace interlock::version

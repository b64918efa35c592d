// The rows whose versions this transaction has asserted, and has locked by that: any statement may
// write them.
//
// They are known by their places. A locked row stays in its place, and one that the transaction
// moves by writing it is its own from then on. A rollback to a savepoint gives up the locks that
// were acquired after it, and forgets these rows.
#pragma once

#include "server/server.h"

namespace interlock::version {

void note_asserted(Oid relid, const ItemPointerData& row);

bool is_asserted(Oid relid, const ItemPointerData& row);

} // namespace interlock::version

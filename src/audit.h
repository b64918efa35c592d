// Tables of the extension that are written for callers who have no privilege on them.
#pragma once

#include "server.h"

namespace interlock {

// Runs an INSERT into the table of the schema interlock as the table's owner.
void audit(const char* table, const char* insert, int count, Oid* types, Datum* values);

} // namespace interlock

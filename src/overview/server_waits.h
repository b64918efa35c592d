// Waits for locks of the lock manager: those of tables, rows and transactions, and key locks.
#pragma once

#include "server/server.h"

namespace interlock::overview {

// Reports the waits of all processes (server/waits.h).
void report_server_waits(List** waits);

} // namespace interlock::overview

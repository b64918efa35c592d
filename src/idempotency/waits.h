// Who waits for the end of a committed claim, for view blocking.
#pragma once

#include "server/server.h"

namespace interlock::idempotency {

// Reports the waits of this database (server/waits.h). None without preload.
void report_claim_waits(List** waits);

} // namespace interlock::idempotency

// Tables whose rows come from a publisher, by logical replication.
#pragma once

#include "server/server.h"

namespace interlock {

// Whether a subscription, enabled or not, writes the table or one that it is a partition of. What
// is due there is done on the publisher, and what this server did by itself would meet the changes
// that arrive from there.
bool is_subscribed(Oid relid);

} // namespace interlock

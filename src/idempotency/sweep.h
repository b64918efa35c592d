// The sweeper's task for idempotency: it deletes expired keys, also pending keys that have expired.
// A live claim expires long after its deadline, so it is never deleted.
#pragma once

#include "sweeper/task.h"

namespace interlock::idempotency {

// The task.
extern const SweepTask kKeySweep;

} // namespace interlock::idempotency

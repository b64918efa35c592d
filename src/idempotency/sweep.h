// The sweeper's part in idempotency: expired keys are deleted, pending ones too once they are that
// old. A live claim expires long after its deadline, so it is never touched.
#pragma once

#include "sweeper/task.h"

namespace interlock::idempotency {

// The sweeper's task.
extern const SweepTask kKeySweep;

} // namespace interlock::idempotency

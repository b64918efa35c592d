// The error of claims: IL008.
#pragma once

#include "idempotency/idempotency.h"

namespace interlock::idempotency {

// For a claim that another worker has taken over, or that has ended.
[[noreturn]] void raise_claim_lost(const IdempotencyKey& key, int64 token);

} // namespace interlock::idempotency

// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "idempotency/sweep.h"
#include "idempotency/wait.h"

namespace interlock {

extern const Concept kIdempotencyConcept = {
    .name = "idempotency",
    .preload = preload_idempotency_waits,
    .sweep = &kKeySweep,
};

} // namespace interlock

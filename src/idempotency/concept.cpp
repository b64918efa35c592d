// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "idempotency/wait.h"

namespace interlock {

extern const Concept kIdempotencyConcept = {
    .name = "idempotency",
    .preload = preload_idempotency_waits,
};

} // namespace interlock

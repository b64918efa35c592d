// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "idempotency/access.h"
#include "idempotency/cached_rows.h"
#include "idempotency/sweep.h"
#include "idempotency/wait.h"
#include "table/part.h"

namespace interlock::idempotency {

int cached_rows_part;
int access_part;

constexpr TablePart kParts[] = {{.number = &cached_rows_part}, {.number = &access_part}};

extern const Concept kIdempotencyConcept = {
    .name = "idempotency",
    .preload = preload_idempotency_waits,
    .sweep = &kKeySweep,
    .parts = kParts,
    .part_count = lengthof(kParts),
};

} // namespace interlock::idempotency

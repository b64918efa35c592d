// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "idempotency/access.h"
#include "idempotency/cached_rows.h"
#include "idempotency/sweep.h"
#include "idempotency/wait.h"
#include "table/facet.h"

namespace interlock::idempotency {

int cached_rows_facet;
int access_facet;

constexpr TableFacet kFacets[] = {{.number = &cached_rows_facet}, {.number = &access_facet}};

extern const Concept kIdempotencyConcept = {
    .name = "idempotency",
    .preload = preload_idempotency_waits,
    .sweep = &kKeySweep,
    .facets = kFacets,
    .facet_count = lengthof(kFacets),
};

} // namespace interlock::idempotency

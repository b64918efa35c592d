// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "history/history.h"

namespace interlock {

extern const Concept kHistoryConcept = {
    .name = "history",
    .sweep = &kHistorySweep,
};

} // namespace interlock

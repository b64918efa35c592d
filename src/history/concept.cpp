// What the concept registers (server/concept.h).

#include "server/concept.h"

namespace interlock {

extern const Concept kHistoryConcept = {
    .name = "history",
};

} // namespace interlock

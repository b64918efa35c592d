// What the concept registers (server/concept.h).

#include "server/concept.h"

namespace interlock {

extern const Concept kVersionConcept = {
    .name = "version",
};

} // namespace interlock

// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "marker/marker.h"
#include "marker/sweep.h"

namespace interlock {

extern const Concept kMarkerConcept = {
    .name = "marker",
    .define_settings = define_marker_settings,
    .sweep = &kMarkerSweep,
};

} // namespace interlock

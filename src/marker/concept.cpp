// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "marker/marker.h"

namespace interlock {

extern const Concept kMarkerConcept = {
    .name = "marker",
    .define_settings = define_marker_settings,
};

} // namespace interlock

// What the folder registers (server/concept.h).

#include "server/concept.h"
#include "contention/counters.h"

namespace interlock::inline contention {

extern const Concept kContentionConcept = {
    .name = "contention",
    .define_settings = define_counting,
    .preload = preload_lines,
    .report_usage = report_lines,
};

} // namespace interlock::inline contention

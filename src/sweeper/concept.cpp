// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "sweeper/deadline.h"
#include "sweeper/state.h"
#include "sweeper/sweeper.h"

namespace interlock {

namespace {

void preload() {
    request_sweeper_memory();
    report_deadlines();
    register_sweeper();
}

} // namespace

extern const Concept kSweeperConcept = {
    .name = "sweeper",
    .define_settings = define_sweeper_settings,
    .preload = preload,
};

} // namespace interlock

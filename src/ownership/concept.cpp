// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "ownership/write_log.h"
#include "ownership/writer.h"

namespace interlock {

namespace {

void define_settings() {
    define_writer_settings();
    define_write_log_settings();
}

} // namespace

extern const Concept kOwnershipConcept = {
    .name = "ownership",
    .define_settings = define_settings,
    .sweep = &kWriteLogSweep,
};

} // namespace interlock

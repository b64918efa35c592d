// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "ownership/ownership.h"
#include "ownership/write_log.h"
#include "ownership/writer.h"
#include "table/facet.h"

namespace interlock::ownership {

int ownership_facet;

constexpr TableFacet kFacet = {
    .number = &ownership_facet,
    .trigger_function = "ownership_trigger",
    .load_trigger = load_ownership,
    .mechanism = &kOwnershipMechanism,
    .complete = check_owned_columns,
};

static void define_settings() {
    define_writer_settings();
    define_write_log_settings();
}

extern const Concept kOwnershipConcept = {
    .name = "ownership",
    .define_settings = define_settings,
    .sweep = &kWriteLogSweep,
    .facets = &kFacet,
    .facet_count = 1,
};

} // namespace interlock::ownership

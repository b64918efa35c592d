// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "children/children.h"
#include "table/facet.h"

namespace interlock::children {

int children_facet;

constexpr TableFacet kFacet = {
    .number = &children_facet,
    .trigger_function = "children_trigger",
    .load_trigger = load_guard,
    .mechanism = &kChildrenMechanism,
    .complete = load_foreign_keys,
};

extern const Concept kChildrenConcept = {
    .name = "children",
    .facets = &kFacet,
    .facet_count = 1,
};

} // namespace interlock::children

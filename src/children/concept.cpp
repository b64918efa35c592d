// What the concept registers (server/concept.h).

#include "server/concept.h"
#include "children/children.h"
#include "table/part.h"

namespace interlock::children {

int children_part;

constexpr TablePart kPart = {
    .number = &children_part,
    .trigger_function = "children_trigger",
    .load_trigger = load_guard,
    .mechanism = &kChildrenMechanism,
    .complete = load_foreign_keys,
};

extern const Concept kChildrenConcept = {
    .name = "children",
    .parts = &kPart,
    .part_count = 1,
};

} // namespace interlock::children

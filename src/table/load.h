// Reading what is kept of a table (table/facts.h).
#pragma once

#include "table/facts.h"

namespace interlock {

// In a memory context of its own under the current one; not marked valid yet: the caller knows
// whether the table has changed meanwhile.
RelationFacts* load_facts(Relation rel);

} // namespace interlock

// What code runs when a row of a table is written.
#pragma once

#include "relation.h"

namespace interlock {

// Fills in what the facts say of it. The triggers are the relation's own, or a copy.
void load_code(RelationFacts* facts, Relation rel, const TriggerDesc* triggers);

// Whether an INSERT runs triggers, rules, checks or defaults.
bool inserting_runs_code(Relation rel);

} // namespace interlock

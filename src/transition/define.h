// Prepares the arguments of define_transitions.
#pragma once

#include "table/relation.h"

namespace interlock::transition {

// Raises an error, such as 42804, if the column cannot be a state column.
void check_state_column(Relation rel, AttrNumber column);

// Reads the transitions and writes every state as state_text() prints it. A state that the type
// does not have (no label of the enum, no number) raises the error of the type.
Jsonb* canonical_transitions(Relation rel, AttrNumber column, Jsonb* transitions);

// The same for an array of states, given as texts.
Jsonb* canonical_states(Relation rel, AttrNumber column, const List* states);

} // namespace interlock::transition

// What define_transitions makes of its arguments.
#pragma once

#include "table/relation.h"

namespace interlock::transition {

// Raises 42804 and others when the column cannot be a state.
void check_state_column(Relation rel, AttrNumber column);

// Reads the transitions and writes them again with every state as state_text() prints it; a
// state that the type does not know (no label of the enum, no number) is the type's own error.
Jsonb* canonical_transitions(Relation rel, AttrNumber column, Jsonb* transitions);

// Likewise an array of states, which are texts.
Jsonb* canonical_states(Relation rel, AttrNumber column, const List* states);

} // namespace interlock::transition

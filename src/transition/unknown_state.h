// States that a machine does not know. Also states of a machine that the column's type no longer
// has, because a label of an enum was renamed or the type of the column was changed.
#pragma once

#include "table/relation.h"

namespace interlock::transition {

struct StateMachine;

// Raises 22023 unless the transitions or the initial states name the state. The hint has the
// nearest name. `argument` is the name of the function's argument.
void require_known_state(Relation rel, const StateMachine* machine, const char* argument,
                         const char* state);

// The hint for an error about states of the column: which states the machine names that the type
// does not have, and how the owner can repair that. Null if the type has all states.
const char* way_back_of_states(Relation rel, const StateMachine* machine);

// Calls errhint() for a text that is no value of the column's type, with the states that the
// machine knows, or with way_back_of_states().
void hint_at_states(Relation rel, const StateMachine* machine, const char* state);

// The same if there is no machine yet. The hint has the labels of the type if it is an enum.
void hint_at_type(Oid type, const char* state);

} // namespace interlock::transition

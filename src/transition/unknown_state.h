// States that a machine does not know, and states of a machine that the type of its column does not
// have any more: a label of an enum was renamed, or the column has another type now.
#pragma once

#include "table/relation.h"

namespace interlock::transition {

struct StateMachine;

// Raises 22023 unless the transitions or the initial states name the state. The hint has the
// nearest name. `argument` is that of a function.
void require_known_state(Relation rel, const StateMachine* machine, const char* argument,
                         const char* state);

// For errhint() at an error about states of the column: what the machine names that the type does
// not have, and how the owner can cure that. Null when the type has all of them.
const char* way_back_of_states(Relation rel, const StateMachine* machine);

// Calls errhint() with the states that the machine knows, or with the way back, for a text that is
// no value of the column's type.
void hint_at_states(Relation rel, const StateMachine* machine, const char* state);

// The same where there is no machine yet: with the labels of the type if it is an enum.
void hint_at_type(Oid type, const char* state);

} // namespace interlock::transition

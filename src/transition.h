// Status transitions: a state column that only moves along declared edges, for every writer.
//
// The machine is the arguments of a trigger: the column, the transitions as JSON, and the initial
// states as a JSON array or empty. A null state is no state: it may take any initial state (any
// declared one if none are given), and a state never becomes null.
//
// Isolation: transition() is one conditional update. Of two callers that race from one state
// exactly one wins; the other gets state_changed under READ COMMITTED and 40001 above. A guard that
// reads other tables needs SERIALIZABLE or locks, as always.
#pragma once

#include "key.h"
#include "relation.h"

namespace interlock {

struct StateMachine {
    NameData name;
    AttrNumber column; // InvalidAttrNumber when the column is gone
    Oid type;
    int32 typmod;
    FmgrInfo output;
    Jsonb* transitions; // {"from": ["to", ...]}, states as the column's type prints them
    Jsonb* initial;     // ["state", ...] or null
    char enabled;
};

void load_state_machine(TupleDesc columns, const Trigger* trigger, StateMachine* machine);

bool is_allowed(const StateMachine* machine, const char* from, const char* to);

} // namespace interlock

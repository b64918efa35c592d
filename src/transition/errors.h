// The errors of transitions: IL002 for a change of state that is not allowed, IL003 for a row that
// another transaction has changed.
#pragma once

#include "transition/transition.h"

namespace interlock::transition {

// A refused change of state, with what the caller may know about it.
struct RefusedMove {
    bool is_new = false;       // the row is new
    bool tells_states = false; // false: `from` and `to` are not shown
    const char* key = nullptr; // as JSON, or null
    const char* from = nullptr;
    const char* to = nullptr;
    const Guard* guard = nullptr;    // the guard that refuses it
    const char* objection = nullptr; // its reason
};

// Raises IL002.
[[noreturn]] void raise_not_allowed(Relation rel, const StateMachine* machine,
                                    const RefusedMove& move);
// The same for a row that a trigger refuses. It shows the columns that the current user could
// SELECT. The row is the new row of an INSERT, or the old row of an UPDATE. It counts the refusal,
// and also the call, if nothing else counts the call.
[[noreturn]] void refuse_state(Relation rel, const TableInfo* info, const StateMachine* machine,
                               HeapTuple row, RefusedMove move, bool counts_call);

// What a caller has asked for, and what it found.
struct Mismatch {
    Relation rel;
    const TableInfo* info;
    const StateMachine* machine;
    const char* key;   // as JSON
    const List* from;  // the states that the caller allows, as C strings
    bool is_array;     // it has given them as an array
    const char* state; // of the row, or null
};

// Raises IL003: the row has another state.
[[noreturn]] void raise_state_changed(const Mismatch& found);

// Raises IL003: these columns have other values than the caller's argument "match".
[[noreturn]] void raise_no_match(const Mismatch& found, const Bitmapset* differences);

} // namespace interlock::transition

// Guards: functions of the old and the new row that decide whether a row may go from one state to
// another. The BEFORE UPDATE trigger asks them, so they hold for every writer.
//
// Which function it is, the server knows: the trigger's condition names all of them.
//
//     WHEN (true OR may_claim(OLD.*, OLD.*) IS NULL OR ...)
//
// It is always true and calls none. But the server stores functions in it by OID, so that a guard
// is followed through renames, dumps, restores and partitions, and cannot be dropped without the
// trigger. The trigger's last argument is {"from": {"to": n}}, where n counts these functions.
//
// A guard runs as the role that writes, which needs EXECUTE on it, like a trigger function that the
// owner of the table has chosen. It gets copies of the rows, after all other BEFORE triggers of
// others and before generated columns are computed. What it reads of other rows is not locked: a
// guard on other tables needs SERIALIZABLE, or locks what it reads.
#pragma once

#include "execution/row_change.h"
#include "table/relation.h"

namespace interlock::transition {

struct StateMachine;

struct Guard {
    Oid function;
    Oid row_type;      // of both arguments
    bool gives_reason; // returns a text, else boolean
};

// Whether the function takes two rows of one type, and returns boolean or text.
bool describe_guard(Oid function, Guard* guard);

// Reads the guards of a trigger that was created for the table `relid` or one that it is a
// partition of. False when they are not as define_transitions writes them.
bool read_guards(StateMachine* machine, Oid relid, const Trigger* trigger);

// Of that transition; null when it has none.
const Guard* guard_of(const StateMachine* machine, const char* from, const char* to);

// Asks the guard. Null when the row may go, else why not. `caller` is the trigger's own function,
// which remembers the guard for the rest of the statement. Raises 42501 when the current user may
// not execute it, and what it raises.
const char* objection_of(const Guard& guard, const StateMachine* machine, const RowChange& change,
                         FmgrInfo* caller);

// For define_transitions: the argument and the condition of the trigger, both empty without guards.
// `machine` has the transitions. Raises 22023 for another shape, for a transition that is not
// declared, and for a function that cannot be a guard, 42883 for one that does not exist, 42501 for
// one that the current user may not execute.
StateMachine machine_to_declare(Relation rel, AttrNumber column, Jsonb* transitions);
struct GuardDeclaration {
    const char* argument;
    const char* condition;
};
GuardDeclaration declare_guards(Relation rel, const StateMachine& machine, Jsonb* guards);

// The function that such an argument names, with its argument types or without (named_function).
Oid named_guard(Relation rel, const char* name);

// The write of try_transition. If a guard refuses its row, that is an answer and no error: the
// trigger leaves the row as it is, and says why.
struct GuardedWrite : WritingVerb {
    Oid root;           // of the table
    const char* column; // of the state
    int trigger_depth;  // around the write
    MemoryContext memory;
    mutable const char* objection; // null: no guard has refused it
};
GuardedWrite guarded_write(Relation rel, const StateMachine* machine);

// The write whose own trigger runs now; null for any other write.
const GuardedWrite* firing_write(const RowChange& change, const StateMachine* machine);

} // namespace interlock::transition

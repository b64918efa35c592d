// Guards: functions of the old and the new row that decide whether a row may go from one state to
// another. The BEFORE UPDATE trigger calls them, so they apply to every writer.
//
// The trigger's condition names all guards:
//
//     WHEN (true OR may_claim(OLD.*, OLD.*) IS NULL OR ...)
//
// The condition is always true and calls none of them. But the server stores functions in it by
// OID. So a guard is followed through renames, dumps, restores and partitions, and it cannot be
// dropped without the trigger. The trigger's last argument is {"from": {"to": n}}, where n is the
// number of the function in the condition.
//
// A guard runs as the role that writes. That role needs EXECUTE on it. It is like a trigger
// function that the table's owner has chosen. The guard gets copies of the rows. It is called after
// all other BEFORE triggers, and before generated columns are computed. Other rows that it reads
// are not locked. A guard that reads other tables needs SERIALIZABLE, or must lock what it reads.
#pragma once

#include "execution/row_change.h"
#include "table/relation.h"

namespace interlock::transition {

struct StateMachine;

struct Guard {
    Oid function;
    Oid row_type;      // type of both arguments
    bool gives_reason; // returns a text, otherwise boolean
};

// Whether the function takes two rows of one type and returns boolean or text.
bool describe_guard(Oid function, Guard* guard);

// Reads the guards of a trigger that was created for the table `relid` or for a parent of this
// partition. Returns false if define_transitions does not write such guards.
bool read_guards(StateMachine* machine, Oid relid, const Trigger* trigger);

// The guard of the transition. Null if it has none.
const Guard* guard_of(const StateMachine* machine, const char* from, const char* to);

// Calls the guard. Returns null if the row may go, otherwise the reason. `caller` is the trigger's
// own function: it keeps the guard for the rest of the statement. Raises 42501 if the current user
// may not execute the guard, and any error of the guard.
const char* objection_of(const Guard& guard, const StateMachine* machine, const RowChange& change,
                         FmgrInfo* caller);

// Drops what the guards have kept in `caller`, after an error of one of them.
void forget_functions(FmgrInfo* caller);

// For define_transitions: the argument and the condition of the trigger, both empty without guards.
// `machine` has the transitions. Raises 22023 if the guards have another form, for a transition
// that is not declared, and for a function that cannot be a guard. Raises 42883 for a function that
// does not exist, and 42501 for a function that the current user may not execute.
StateMachine machine_to_declare(Relation rel, AttrNumber column, Jsonb* transitions);
struct GuardDeclaration {
    const char* argument;
    const char* condition;
};
GuardDeclaration declare_guards(Relation rel, const StateMachine& machine, Jsonb* guards);

// The function that such an argument names, with or without its argument types (named_function).
Oid named_guard(Relation rel, const char* name);

// The write of try_transition. If a guard refuses its row, the result is an answer and no error:
// the trigger suppresses the write and notes the reason.
struct GuardedWrite : WritingFunction {
    Oid root;           // the table
    const char* column; // the state column
    int trigger_depth;  // at the write
    MemoryContext memory;
    mutable const char* objection; // null: no guard has refused the write
};
GuardedWrite guarded_write(Relation rel, const StateMachine* machine);

// The write whose own trigger runs now; null for any other write.
const GuardedWrite* firing_write(const RowChange& change, const StateMachine* machine);

} // namespace interlock::transition

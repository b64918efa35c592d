// Status transitions: a state column that changes only along declared transitions, for every
// writer.
//
// The declaration is the arguments of a BEFORE UPDATE trigger: the column, the transitions as JSON,
// the initial states as a JSON array or empty, what becomes of a repeated state, and the guards of
// transitions if there are any (transition/guard.h). If there are
// initial states an AFTER INSERT trigger checks new rows: only then is it known which rows are new,
// and which values they have. Null is not a state: it may become any initial state (any declared
// one if none are given), and a state never becomes null.
//
// An update that leaves the state as it is passes. With on_repeat 'reject' it does only if it does
// not name the column, or if the transition from the state to itself is declared: of two plain
// updates to the same state, the second one finds it reached and is refused.
//
// Isolation: transition() is one conditional update. Of two callers that race from one state
// exactly one wins; the other gets state_changed under READ COMMITTED and 40001 above. A condition
// that reads other tables needs SERIALIZABLE or locks, as always.
#pragma once

#include "table/key.h"
#include "table/relation.h"
#include "table/trigger.h"

namespace interlock::inline server {
class Arguments;
} // namespace interlock::inline server

namespace interlock::transition {

struct Guard; // transition/guard.h

struct StateMachine : OwnTrigger {
    NameData name;
    AttrNumber column; // InvalidAttrNumber when the column is gone or has another type
    Oid type;
    Oid base_type; // below any domain
    int32 typmod;
    bool takes_datum; // a value of the type can be stored as it is
    FmgrInfo output;
    Jsonb* transitions; // {"from": ["to", ...]}, states as state_text() prints them
    Jsonb* initial;     // ["state", ...] or null
    bool rejects_repeats;
    Jsonb* guarded; // {"from": {"to": 0}}, the numbers of guards, or null
    const Guard* guards;
    int guard_count;
};

struct StateMachines {
    StateMachine* first;
    int count;
    const StateMachine* begin() const { return first; }
    const StateMachine* end() const { return first + count; }
};

// Those of a table, by the names of their triggers.
extern int machines_part;
inline StateMachines machines_of(const TableInfo* info) {
    const auto* machines = part_of<const StateMachines>(info, machines_part);
    return machines != nullptr ? *machines : StateMachines{};
}

// Reads the arguments of a trigger; false when they are not as define_transitions writes them. What
// the columns of the table say is left out.
bool read_declaration(StateMachine* machine, Oid relid, const Trigger* trigger);

// The text of a declaration that becomes an argument of the trigger; raises 54000 when it is too
// long.
char* declaration_text(const char* argument, Jsonb* json);

extern const Mechanism kTransitionMechanism;

// And back; for a text whose syntax was checked (transition/text.h).
Jsonb* parse_declaration(const char* text);

// Whether a state column can be of that type.
bool can_be_state(Oid type);

// What becomes of an update that names the state column and leaves the state as it is.
constexpr const char* kAllowRepeats = "allow";
constexpr const char* kRejectRepeats = "reject";

// Arguments of more bytes are not read: define_transitions makes none.
constexpr size_t kMostTransitionBytes = 1024 * 1024;

// The declaration of a state column, or the only one of the table when no column is named. Raises
// 55000 when there is none or its column is missing, 39P01 when the trigger's arguments are not
// transitions, 22023 when there are several to choose from.
const StateMachine* find_machine(Relation rel, const TableInfo* info, const char* column);
const StateMachine* usable_machine(Relation rel, const StateMachine* machine);

[[noreturn]] void raise_no_transitions(Relation rel, const char* column);

// Whether a new row may have the state, and whether a row may change from one to the other. Null is
// not a state.
bool may_start(const StateMachine* machine, const char* state);
bool may_move(const StateMachine* machine, const char* from, const char* to);

// The states that a row may go to from there, as C strings in the order of the declaration.
List* states_after(const StateMachine* machine, const char* from);

// Whether transitions or initial states name it.
bool knows_state(const StateMachine* machine, const char* state);

// A change of state that is refused, as far as the caller may know of it.
struct RefusedMove {
    bool is_new = false;       // the row is a new one
    bool tells_states = false; // else `from` and `to` are not shown
    const char* key = nullptr; // as JSON, or null
    const char* from = nullptr;
    const char* to = nullptr;
    const Guard* guard = nullptr;    // that refuses it
    const char* objection = nullptr; // what it says
};

// Raises IL002.
[[noreturn]] void raise_not_allowed(Relation rel, const StateMachine* machine,
                                    const RefusedMove& move);
// The same for a row that a trigger refuses: shows what the current user could SELECT of it. The
// row is the new one itself, or the one as it was before the update.
// Counts the refusal of a write; as a call, too, if nothing else counts it as one.
void count_refusal(const TableInfo* info, bool is_call);

[[noreturn]] void refuse_state(Relation rel, const TableInfo* info, const StateMachine* machine,
                               HeapTuple row, RefusedMove move);

// The machine that a trigger is about, by its first argument.
const StateMachine* machine_of_trigger(Relation rel, const TableInfo* info, const Trigger* trigger);

// The state of a row; null for null.
const char* state_of_row(const StateMachine* machine, TupleDesc columns, HeapTuple row);

// The server moves a row to another partition by inserting it there. Notes what an update makes of
// a row that leaves its partition, so that this one insert is not checked as that of a new row.
void note_move(Relation rel, const TableInfo* info, const StateMachine* machine, HeapTuple new_row,
               const char* state);

// The value of a state that is given as text, by the input function of the column's type.
Datum state_datum(Oid type, int32 typmod, char* state);

// An argument of any type as a value of the column. A value that the type cannot hold is the type's
// own error, with the declared states as its hint.
Datum state_value(Relation rel, const StateMachine* machine, Datum value, Oid type);
Datum state_argument(const Arguments& arguments, int n, const char* name, Relation rel,
                     const StateMachine* machine);

// A state as state_text() prints it, so that '01' and 1 are one state of an integer column; of a
// column of that type, for the verbs that configure the table.
char* canonical_state(Relation rel, Oid type, int32 typmod, char* state);

// The state in a value of the column; null for null. As the column's type prints it, but booleans
// as true and false, and numbers of type numeric without zeros at their ends: one text for each.
const char* state_text(const StateMachine* machine, Datum value, bool is_null);

} // namespace interlock::transition

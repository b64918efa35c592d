// Status transitions: a state column changes only along declared transitions, for every writer.
//
// The declaration is the arguments of a BEFORE UPDATE trigger: the column, the transitions as JSON,
// the initial states as a JSON array or an empty text, what happens to a repeated state, and the
// guards if there are any (transition/guard.h). If there are initial states, an AFTER INSERT
// trigger checks new rows: only then is it known which rows are new and which values they have.
// Null is not a state. It may become any initial state (or any declared state if there are no
// initial states). A state never becomes null.
//
// An update that does not change the state passes. With on_repeat 'reject' it passes only if it
// does not name the column, or if the transition from the state to itself is declared. So of two
// plain updates to the same state, the second is refused.
//
// Isolation: transition() is one conditional update. If two callers race from one state, exactly
// one wins. The other gets state_changed under READ COMMITTED, and 40001 at higher levels. A
// condition that reads other tables needs SERIALIZABLE or locks.
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
    AttrNumber column; // InvalidAttrNumber: the column is gone or has another type
    Oid type;
    Oid base_type; // base type of a domain
    int32 typmod;
    bool takes_datum; // a value of the type can be stored unchanged
    FmgrInfo output;
    Jsonb* transitions; // {"from": ["to", ...]}, states as state_text() prints them
    Jsonb* initial;     // ["state", ...] or null
    bool rejects_repeats;
    Jsonb* guarded; // {"from": {"to": 0}}, the numbers of guards, or null
    const Guard* guards;
    int guard_count;
};

// The machines of a table, in the order of their triggers' names.
extern int machines_facet;
inline FacetList<StateMachine> machines_of(const TableInfo* info) {
    return list_of<StateMachine>(info, machines_facet);
}

// Reads the arguments of a trigger, without the columns of the table. Returns false if
// define_transitions does not write such arguments.
bool read_declaration(StateMachine* machine, Oid relid, const Trigger* trigger);

// The text of a declaration, for an argument of the trigger. Raises 54000 if it is too long.
char* declaration_text(const char* argument, Jsonb* json);

extern const Mechanism kTransitionMechanism;

// The reverse, for a text whose syntax was checked (transition/text.h).
Jsonb* parse_declaration(const char* text);

// Whether a state column can be of that type.
bool can_be_state(Oid type);

// What happens to an update that names the state column and does not change the state.
constexpr const char* kAllowRepeats = "allow";
constexpr const char* kRejectRepeats = "reject";

// Longer arguments are not read. define_transitions writes none.
constexpr size_t kMostTransitionBytes = 1024 * 1024;

// The declaration of a state column. If `column` is null, the only declaration of the table. Raises
// 55000 if there is none or if its column is missing, 39P01 if the trigger's arguments are no
// transitions, and 22023 if there are several and `column` is null.
const StateMachine* find_machine(Relation rel, const TableInfo* info, const char* column);
const StateMachine* usable_machine(Relation rel, const StateMachine* machine);

[[noreturn]] void raise_no_transitions(Relation rel, const char* column);

// Whether a new row may have the state, and whether a row may change from one state to the other.
// Null is not a state.
bool may_start(const StateMachine* machine, const char* state);
bool may_move(const StateMachine* machine, const char* from, const char* to);

// The states to which a row may go from that state, as C strings in the order of the declaration.
List* states_after(const StateMachine* machine, const char* from);

// The same as a JSON array, for DETAIL. For a new row only declared initial states.
const char* allowed_json(const StateMachine* machine, const char* from);

// Calls visit(state) for each text in the JSON of a declaration, also for the names of members.
template <typename Visit>
void each_state(JsonbContainer* json, Visit&& visit) {
    JsonbIterator* iterator = JsonbIteratorInit(json);
    JsonbValue value;
    for (JsonbIteratorToken token;
         (token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE;) {
        CHECK_FOR_INTERRUPTS(); // there may be many
        if (token == WJB_KEY || token == WJB_ELEM)
            visit(std::string_view(value.val.string.val, value.val.string.len));
    }
}

// Whether the transitions or initial states name the state.
bool knows_state(const StateMachine* machine, const char* state);

// The machine that the trigger belongs to, found by its first argument.
const StateMachine* machine_of_trigger(Relation rel, const TableInfo* info, const Trigger* trigger);

// The state of a row; null for null.
const char* state_of_row(const StateMachine* machine, TupleDesc columns, HeapTuple row);

// The server moves a row to another partition by inserting it there. This notes the new row of an
// update that leaves its partition, so that this one INSERT is not checked as a new row.
void note_move(Relation rel, const TableInfo* info, const StateMachine* machine, HeapTuple new_row,
               const char* state);

// The value of a state that is passed as text, converted by the input function of the column's
// type.
Datum state_datum(Oid type, int32 typmod, char* state);

// An argument of any type as a value of the column. For a value that the type cannot hold it raises
// the error of the type, with the declared states as the hint.
Datum state_value(Relation rel, const StateMachine* machine, Datum value, Oid type);
Datum state_argument(const Arguments& arguments, int n, const char* name, Relation rel,
                     const StateMachine* machine);

// A state as state_text() prints it, so that '01' and 1 are the same state of an integer column.
// The second function is for a column of that type, for functions that configure the table.
char* canonical_state(Relation rel, Oid type, int32 typmod, char* state);

// The state for a value of the column. Null for null. It is the text that the column's type prints,
// with two exceptions, so that each state has one text. Booleans are true and false. Values of type
// numeric have no trailing zeros.
const char* state_text(const StateMachine* machine, Datum value, bool is_null);

} // namespace interlock::transition

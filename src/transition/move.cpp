// transition and try_transition: one row goes to another state if it still is in one of the
// expected ones.

#include "execution/stored_row.h"
#include "execution/write.h"
#include "server/arguments.h"
#include "server/error.h"
#include "server/result_row.h"
#include "table/match.h"
#include "table/row.h"
#include "table/row_json.h"
#include "transition/errors.h"
#include "transition/guard.h"
#include "transition/transition.h"
#include "transition/unknown_state.h"

namespace interlock::transition {

namespace {

struct State {
    Datum value;
    const char* text; // by state_text()
};

// The states that a row may be in.
struct States {
    State* first;
    int count;
    bool is_array; // as it was given
    const State* begin() const { return first; }
    const State* end() const { return first + count; }
};

// The arguments of transition() and try_transition().
struct Move {
    Relation rel;
    const TableInfo* info;
    const StateMachine* machine;
    Key key;
    States from;
    State to;
    Changes changes;
    Match match;
};

enum class MoveOutcome { kTransitioned, kStateChanged, kNoMatch, kNotAllowed, kNotFound };

struct MoveResult {
    MoveOutcome outcome;
    const char* state;            // the row's state afterwards, null when it has none or is unknown
    StoredRow row;                // as it was found, where it was not moved
    const Bitmapset* differences; // from the match
    const char* objection;        // of a guard
};

} // namespace

static Move open_move(const Arguments& arguments);
// With a guarded write a guard's refusal is kNotAllowed, and an error without.
static MoveResult perform(const Move& move, const GuardedWrite* guarded = nullptr);
static MoveResult try_to_perform(const Move& move);
static const char* outcome_name(MoveOutcome outcome);
[[noreturn]] static void raise_not_moved(const Move& move, const MoveResult& found);

extern "C" {
PG_FUNCTION_INFO_V1(transition);
PG_FUNCTION_INFO_V1(try_transition);

Datum transition(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Move move = open_move(arguments);
    MoveResult result = perform(move);
    if (result.outcome != MoveOutcome::kTransitioned)
        raise_not_moved(move, result);
    close_table(move.rel);
    PG_RETURN_VOID();
}

// (outcome, state, current, reason)
Datum try_transition(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Move move = open_move(arguments);
    MoveResult result = try_to_perform(move);
    close_table(move.rel);
    Datum values[4] = {CStringGetTextDatum(outcome_name(result.outcome))};
    bool nulls[4] = {false, result.state == nullptr, !result.row.found,
                     result.objection == nullptr};
    if (result.state != nullptr)
        values[1] = CStringGetTextDatum(result.state);
    if (result.row.found)
        values[2] = stored_row_to_jsonb(result.row);
    if (result.objection != nullptr)
        values[3] = CStringGetTextDatum(result.objection);
    return result_row(fcinfo, values, nulls);
}
}

// --- Arguments ---------------------------------------------------------------------------------

namespace {

// What the states of a call are read with.
struct StateReader {
    Relation rel;
    const StateMachine* machine;
    const char* argument;
    State read(Datum value, Oid type) const {
        Datum state = state_value(rel, machine, value, type);
        return {state, state_text(machine, state, false)};
    }
};

} // namespace

static States states_in(const StateReader& reader, ArrayType* array) {
    Oid type = ARR_ELEMTYPE(array);
    TypeCacheEntry* entry = lookup_type_cache(type, 0);
    Datum* values;
    bool* nulls;
    States states = {};
    states.is_array = true;
    deconstruct_array(array, type, entry->typlen, entry->typbyval, entry->typalign, &values, &nulls,
                      &states.count);
    if (states.count == 0)
        refuse_empty(reader.argument);
    states.first = static_cast<State*>(palloc(sizeof(State) * states.count));
    for (int i = 0; i < states.count; i++) {
        CHECK_FOR_INTERRUPTS();
        if (nulls[i])
            refuse_nulls(reader.argument);
        states.first[i] = reader.read(values[i], type);
    }
    return states;
}

// A driver that sends an array without its type sends it as a text: {open,claimed}. It is an array
// unless the machine knows a state of that name.
static bool is_array_text(const StateMachine* machine, const char* text) {
    size_t length = strlen(text);
    return length > 1 && text[0] == '{' && text[length - 1] == '}' && !knows_state(machine, text);
}

static ArrayType* array_in_text(char* text) {
    return with_hint(
        [] { errhint("Give several states as an array: $1::text[]."); },
        [&] { return DatumGetArrayTypeP(OidInputFunctionCall(F_ARRAY_IN, text, TEXTOID, -1)); });
}

// One state, or an array of them.
static States given_states(const Arguments& arguments, int n, const StateReader& reader) {
    Oid type = arguments.type(n);
    Datum value = arguments.required(n, reader.argument);
    bool is_one = type == TEXTOID || type == reader.machine->type; // without a look-up
    if (!is_one && type_is_array(type))
        return states_in(reader, DatumGetArrayTypeP(value));
    if (type == TEXTOID) {
        char* given = TextDatumGetCString(value);
        if (is_array_text(reader.machine, given))
            return states_in(reader, array_in_text(given));
    }
    auto* state = static_cast<State*>(palloc(sizeof(State)));
    *state = reader.read(value, type);
    return {state, 1, false};
}

static Move open_move(const Arguments& arguments) {
    Move move = {};
    move.rel = open_table(arguments.relation(0), RowExclusiveLock);
    move.info = table_info(move.rel);
    const char* column =
        arguments.is_null(5) ? nullptr : NameStr(*DatumGetName(arguments.value(5)));
    move.machine = find_machine(move.rel, move.info, column);
    move.key = key_argument(arguments, 1, move.rel, move.info);
    move.from = given_states(arguments, 2, {move.rel, move.machine, "from_state"});
    Datum to = state_argument(arguments, 3, "to_state", move.rel, move.machine);
    move.to = {to, state_text(move.machine, to, false)};
    move.changes = parse_changes(move.rel, move.info, move.key, changes_json(arguments, 4),
                                 bms_make_singleton(move.machine->column));
    move.match = match_argument(arguments, 6, move.rel, move.info);
    return move;
}

// --- The row -----------------------------------------------------------------------------------

static bool may_move(const Move& move, const State& from) {
    return may_move(move.machine, from.text, move.to.text);
}

// For what is not allowed: a misspelled state is no transition that may be declared one day.
static void require_known_states(const Move& move) {
    for (const State& from : move.from)
        require_known_state(move.rel, move.machine, "from_state", from.text);
    require_known_state(move.rel, move.machine, "to_state", move.to.text);
}

static bool may_move_at_all(const Move& move) {
    for (const State& from : move.from)
        if (may_move(move, from))
            return true;
    return false;
}

// Ownership of the state column, or a trigger, may have restored the state.
static void require_state(const Move& move, const State& from, const char* stored) {
    if (strcmp(from.text, move.to.text) != 0 && stored != nullptr && strcmp(stored, from.text) == 0)
        raise_suppressed(move.rel);
}

// States are compared as their type does it, by the collation of the column: a domain, which may
// have another one, would leave it open.
static bool run_transition(const Move& move, const State& from, const GuardedWrite* guarded,
                           bool* was_suppressed = nullptr) {
    const StateMachine* machine = move.machine;
    RowWrite write({move.rel, move.info, &move.key, CountedKind::kTransitions},
                   PlanKind("transition"));
    write.variant = machine->column;
    write.set(move.changes);
    write.set(machine->column, write.terms.stored_value(machine->column, {move.to.value, false}));
    write.require(write.terms.same(write.terms.column(machine->column),
                                   write.terms.value(machine->base_type, from.value)));
    write.returns(machine->column);
    write.function = guarded;
    NullableDatum stored;
    bool written = write_row(write, &stored);
    if (was_suppressed != nullptr)
        *was_suppressed = write.was_suppressed;
    if (!written)
        return false;
    require_state(move, from, state_text(machine, stored.value, stored.isnull));
    return true;
}

static Bitmapset* columns_to_judge(const Move& move) {
    return bms_add_member(columns_of(move.match), move.machine->column);
}

// All that the caller may see, and what the answer depends on.
static StoredRow look(const Move& move) {
    Bitmapset* columns = bms_union(readable_columns(move.rel), columns_to_judge(move));
    return read_row(move.rel, move.info, move.key, columns);
}

static const char* state_of(const Move& move, const StoredRow& row) {
    bool is_null;
    Datum value = stored_value(row, move.machine->column, &is_null);
    return state_text(move.machine, value, is_null);
}

static const State* find_state(const States& states, const char* state) {
    for (const State& each : states)
        if (state != nullptr && strcmp(each.text, state) == 0)
            return &each;
    return nullptr;
}

static Bitmapset* differences(const Move& move, const StoredRow& row) {
    if (matches_all(move.match))
        return nullptr;
    HeapTuple tuple = stored_row_as_tuple(row, move.info);
    return differences(move.info, move.match, values_of_row(move.info->columns, tuple));
}

// What becomes of the row as it was read. kTransitioned: it may be moved.
static MoveResult judge(const Move& move, const StoredRow& row) {
    MoveResult result = {};
    result.row = row;
    result.outcome = MoveOutcome::kNotFound;
    if (!row.found)
        return result;
    result.state = state_of(move, row);
    const State* from = find_state(move.from, result.state);
    result.differences = from != nullptr ? differences(move, row) : nullptr;
    if (!may_move_at_all(move) || (from != nullptr && !may_move(move, *from)))
        result.outcome = MoveOutcome::kNotAllowed;
    else if (from == nullptr)
        result.outcome = MoveOutcome::kStateChanged;
    else if (result.differences != nullptr)
        result.outcome = MoveOutcome::kNoMatch;
    else
        result.outcome = MoveOutcome::kTransitioned;
    return result;
}

static MoveResult moved(const Move& move) {
    MoveResult result = {};
    result.outcome = MoveOutcome::kTransitioned;
    result.state = move.to.text;
    return result;
}

constexpr int kAttempts = 3;

static bool is_refused(const GuardedWrite* guarded) {
    return guarded != nullptr && guarded->objection != nullptr;
}

// The row as a guard has refused to move it.
static MoveResult refused(const Move& move, const GuardedWrite* guarded) {
    MoveResult result = judge(move, look(move));
    if (result.outcome == MoveOutcome::kTransitioned) {
        result.outcome = MoveOutcome::kNotAllowed;
        result.objection = guarded->objection;
    }
    return result;
}

// From one state, whatever else is in the row: one conditional update.
static MoveResult perform_at_once(const Move& move, const GuardedWrite* guarded) {
    const State& from = move.from.first[0];
    if (!may_move(move, from)) {
        require_known_states(move);
        return judge(move, look(move));
    }
    for (int i = 0; i < kAttempts; i++) {
        bool was_suppressed;
        if (run_transition(move, from, guarded, &was_suppressed))
            return moved(move);
        if (is_refused(guarded))
            return refused(move, guarded);
        MoveResult found = judge(move, look(move));
        if (found.outcome != MoveOutcome::kTransitioned)
            return found;
        if (was_suppressed)
            break;
    }
    raise_suppressed(move.rel);
}

// The row is locked and judged again before it is written, so that what it was judged by holds. A
// row that does not qualify from the first is not locked.
static MoveResult perform_locked(const Move& move, const GuardedWrite* guarded) {
    const Bitmapset* columns = columns_to_judge(move);
    require_known_states(move);
    for (int i = 0; i < kAttempts; i++) {
        MoveResult found = judge(move, look(move));
        if (found.outcome != MoveOutcome::kTransitioned)
            return found;
        MoveResult locked = judge(
            move, read_row(move.rel, move.info, move.key, columns,
                           {RowStrength::kNoKeyUpdate, RowWait::kWait, CountedKind::kTransitions}));
        if (locked.outcome != MoveOutcome::kTransitioned)
            continue;
        if (run_transition(move, *find_state(move.from, locked.state), guarded))
            return moved(move);
        if (is_refused(guarded))
            return refused(move, guarded);
        break; // the row is locked: something suppresses the write
    }
    raise_suppressed(move.rel);
}

// Whether a caller who reads the row again could move it. A coupon that has been used stays used:
// the call was refused, and has not met another writer.
static bool could_move_now(const Move& move, const MoveResult& result) {
    return result.outcome == MoveOutcome::kNoMatch ||
           (result.outcome == MoveOutcome::kStateChanged && result.state != nullptr &&
            strcmp(result.state, move.to.text) != 0 &&
            may_move(move.machine, result.state, move.to.text));
}

static void count_move(const Move& move, const MoveResult& result) {
    LineRef line = line_of(move.info, CountedKind::kTransitions);
    count(line, Counter::kCalls);
    if (could_move_now(move, result))
        count(line, Counter::kConflicts);
    else if (result.outcome == MoveOutcome::kStateChanged ||
             result.outcome == MoveOutcome::kNotAllowed)
        count(line, Counter::kRefusals);
}

static MoveResult perform(const Move& move, const GuardedWrite* guarded) {
    bool at_once = move.from.count == 1 && matches_all(move.match);
    MoveResult result = at_once ? perform_at_once(move, guarded) : perform_locked(move, guarded);
    count_move(move, result);
    return result;
}

static MoveResult try_to_perform(const Move& move) {
    if (move.machine->guards == nullptr)
        return perform(move);
    GuardedWrite guarded = guarded_write(move.rel, move.machine);
    return perform(move, &guarded);
}

// --- Answers -----------------------------------------------------------------------------------

static const char* outcome_name(MoveOutcome outcome) {
    switch (outcome) {
    case MoveOutcome::kTransitioned:
        return "transitioned";
    case MoveOutcome::kStateChanged:
        return "state_changed";
    case MoveOutcome::kNoMatch:
        return "no_match";
    case MoveOutcome::kNotAllowed:
        return "not_allowed";
    case MoveOutcome::kNotFound:
        return "not_found";
    }
    pg_unreachable();
}

static List* texts_of(const States& states) {
    List* texts = NIL;
    for (const State& state : states)
        texts = lappend(texts, const_cast<char*>(state.text));
    return texts;
}

static void raise_not_moved(const Move& move, const MoveResult& found) {
    if (found.outcome == MoveOutcome::kNotFound)
        raise_no_such_row(move.rel, move.info, move.key);
    const char* key = key_to_text(move.info, *table_key(move.info, move.key, found.row));
    if (found.outcome == MoveOutcome::kNotAllowed) {
        const State* from = find_state(move.from, found.state);
        raise_not_allowed(move.rel, move.machine,
                          {false, true, key, from != nullptr ? from->text : move.from.first[0].text,
                           move.to.text});
    }
    Mismatch mismatch = {move.rel,           move.info,  move.machine, key, texts_of(move.from),
                         move.from.is_array, found.state};
    if (found.outcome == MoveOutcome::kNoMatch)
        raise_no_match(mismatch, found.differences);
    raise_state_changed(mismatch);
}

} // namespace interlock::transition

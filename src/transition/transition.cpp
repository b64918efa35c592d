#include "transition/transition.h"

#include "execution/stored_row.h"
#include "execution/write.h"
#include "server/arguments.h"
#include "server/error.h"
#include "server/result_row.h"
#include "table/row.h"

using namespace interlock;

namespace {

struct State {
    Datum value;
    const char* text; // by state_text()
};

// The arguments of transition() and try_transition().
struct Move {
    Relation rel;
    const TableInfo* info;
    const StateMachine* machine;
    Key key;
    State from;
    State to;
    Changes changes;
};

enum class MoveOutcome { kTransitioned, kStateChanged, kNotAllowed, kNotFound };

struct MoveResult {
    MoveOutcome outcome;
    const char* state; // the row's state afterwards, null when it has none or is not known
    const Key* key;    // what to call a row by that was found
};

Move open_move(const Arguments& arguments);
MoveResult perform(const Move& move);
const char* outcome_name(MoveOutcome outcome);
[[noreturn]] void raise_state_changed(const Move& move, const MoveResult& found);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(transition);
PG_FUNCTION_INFO_V1(try_transition);

Datum transition(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Move move = open_move(arguments);
    MoveResult result = perform(move);
    switch (result.outcome) {
    case MoveOutcome::kTransitioned:
        break;
    case MoveOutcome::kStateChanged:
        raise_state_changed(move, result);
    case MoveOutcome::kNotAllowed:
        raise_not_allowed(
            move.rel, move.machine,
            {false, true, key_to_text(move.info, *result.key), move.from.text, move.to.text});
    case MoveOutcome::kNotFound:
        raise_no_such_row(move.rel, move.info, move.key);
    }
    close_table(move.rel);
    PG_RETURN_VOID();
}

Datum try_transition(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Move move = open_move(arguments);
    MoveResult result = perform(move);
    close_table(move.rel);
    Datum values[2] = {CStringGetTextDatum(outcome_name(result.outcome)), 0};
    bool nulls[2] = {false, result.state == nullptr};
    if (result.state != nullptr)
        values[1] = CStringGetTextDatum(result.state);
    return result_row(fcinfo, values, nulls);
}
}

namespace {

State given_state(const Arguments& arguments, int n, const char* name,
                  const StateMachine* machine) {
    Datum value = state_argument(arguments, n, name, machine);
    return {value, state_text(machine, value, false)};
}

Move open_move(const Arguments& arguments) {
    Move move = {};
    move.rel = open_table(arguments.relation(0), RowExclusiveLock);
    move.info = table_info(move.rel);
    const char* column =
        arguments.is_null(5) ? nullptr : NameStr(*DatumGetName(arguments.value(5)));
    move.machine = find_machine(move.rel, move.info, column);
    move.key = key_argument(arguments, 1, move.rel, move.info);
    move.from = given_state(arguments, 2, "from_state", move.machine);
    move.to = given_state(arguments, 3, "to_state", move.machine);
    move.changes = parse_changes(move.rel, move.info, move.key, changes_json(arguments, 4),
                                 bms_make_singleton(move.machine->column));
    return move;
}

// Ownership of the state column, or a trigger, may have restored the state.
void require_state(const Move& move, const char* stored) {
    if (strcmp(move.from.text, move.to.text) != 0 && stored != nullptr &&
        strcmp(stored, move.from.text) == 0)
        raise_suppressed(move.rel);
}

// States are compared as their type does it, by the collation of the column: a domain, which may
// have another one, would leave it open.
bool run_transition(const Move& move) {
    const StateMachine* machine = move.machine;
    RowWrite write({move.rel, move.info, &move.key}, PlanKind("transition"));
    write.variant = machine->column;
    write.set(move.changes);
    write.set(machine->column, write.terms.stored_value(machine->column, {move.to.value, false}));
    write.require(write.terms.same(write.terms.column(machine->column),
                                   write.terms.value(machine->base_type, move.from.value)));
    write.returns(machine->column);
    NullableDatum stored;
    if (!write_row(write, &stored))
        return false;
    require_state(move, state_text(machine, stored.value, stored.isnull));
    return true;
}

// Reads where the row is now: {kStateChanged, state, key}, or {kNotFound}.
MoveResult look(const Move& move) {
    const Bitmapset* columns =
        with_table_key(move.rel, move.info, move.key, bms_make_singleton(move.machine->column));
    StoredRow row = read_row(move.rel, move.info, move.key, columns);
    if (!row.found)
        return {MoveOutcome::kNotFound, nullptr, nullptr};
    bool is_null;
    Datum value = stored_value(row, move.machine->column, &is_null);
    return {MoveOutcome::kStateChanged, state_text(move.machine, value, is_null),
            table_key(move.info, move.key, row)};
}

MoveResult perform(const Move& move) {
    constexpr int kAttempts = 3;
    if (!may_move(move.machine, move.from.text, move.to.text)) {
        MoveResult found = look(move);
        if (found.outcome != MoveOutcome::kNotFound)
            found.outcome = MoveOutcome::kNotAllowed;
        return found;
    }
    for (int i = 0; i < kAttempts; i++) {
        if (run_transition(move))
            return {MoveOutcome::kTransitioned, move.to.text, nullptr};
        MoveResult found = look(move);
        if (found.state == nullptr || strcmp(found.state, move.from.text) != 0)
            return found;
    }
    raise_suppressed(move.rel);
}

const char* outcome_name(MoveOutcome outcome) {
    switch (outcome) {
    case MoveOutcome::kTransitioned:
        return "transitioned";
    case MoveOutcome::kStateChanged:
        return "state_changed";
    case MoveOutcome::kNotAllowed:
        return "not_allowed";
    case MoveOutcome::kNotFound:
        return "not_found";
    }
    pg_unreachable();
}

void raise_state_changed(const Move& move, const MoveResult& found) {
    const char* state = found.state;
    ereport(
        ERROR,
        (errcode(kStateChanged),
         errmsg("state of the row in table \"%s\" is %s, not \"%s\"",
                RelationGetRelationName(move.rel),
                state != nullptr ? psprintf("\"%s\"", state) : "null", move.from.text),
         errdetail_internal("%s", json_object({{"table", qualified_name(move.rel)},
                                               {"key", nullptr, key_to_text(move.info, *found.key)},
                                               {"column", NameStr(move.machine->name)},
                                               {"expected", move.from.text},
                                               {"state", state}})),
         errhint("Another transaction changed it first: read the row and decide again.")));
}

} // namespace

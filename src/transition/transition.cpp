#include "transition/transition.h"

#include "execution/update.h"
#include "server/arguments.h"
#include "server/error.h"
#include "server/result_row.h"
#include "server/scope.h"
#include "table/plan.h"
#include "table/row.h"

using namespace interlock;

namespace {

struct State {
    Datum value;
    const char* text; // as the column's type prints it
};

// What transition() and try_transition() are given.
struct Move {
    Relation rel;
    const RelationFacts* facts;
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
};

Move open_move(const Arguments& arguments);
MoveResult perform(const Move& move);
const char* outcome_name(MoveOutcome outcome);
[[noreturn]] void raise_state_changed(const Move& move, const char* state);

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
        raise_state_changed(move, result.state);
    case MoveOutcome::kNotAllowed:
        raise_not_allowed(
            move.rel, move.machine,
            {false, true, key_to_text(move.facts, move.key), move.from.text, move.to.text});
    case MoveOutcome::kNotFound:
        raise_no_such_row(move.rel, move.facts, move.key);
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

State state_argument(const Arguments& arguments, int n, const char* name, const Move& move) {
    const StateMachine* machine = move.machine;
    Datum value = state_datum(machine->type, machine->typmod, arguments.string(n, name));
    return {value, state_text(machine, value, false)};
}

Move open_move(const Arguments& arguments) {
    Move move = {};
    move.rel = open_table(arguments.relation(0), RowExclusiveLock);
    move.facts = facts_of(move.rel);
    const char* column =
        arguments.is_null(5) ? nullptr : NameStr(*DatumGetName(arguments.value(5)));
    move.machine = find_machine(move.rel, move.facts, column);
    move.key = key_argument(arguments, 1, move.rel, move.facts);
    move.from = state_argument(arguments, 2, "from_state", move);
    move.to = state_argument(arguments, 3, "to_state", move);
    move.changes = parse_changes(move.rel, move.facts, arguments.jsonb(4, "changes"),
                                 bms_make_singleton(move.machine->column));
    return move;
}

void write_transition(Statement* statement, const Move& move) {
    const char* column = quote_identifier(NameStr(move.machine->name));
    statement->add("UPDATE %s AS t SET ", rows_of(move.rel));
    add_assignments(statement, move.facts, move.changes.columns);
    statement->add("%s%s = $%d", move.changes.count > 0 ? ", " : "", column,
                   statement->parameter(move.machine->type));
    statement->add(" WHERE ");
    add_key_condition(statement, move.facts);
    TypeCacheEntry* type = lookup_type_cache(move.machine->type, TYPECACHE_EQ_OPR);
    statement->add(" AND t.%s %s $%d", column, operator_text(type->eq_opr),
                   statement->parameter(move.machine->type));
    statement->add(" RETURNING t.%s", column);
}

// The owner of the state column, or a trigger, may have kept the state where it was.
void require_state(const Move& move, const char* stored) {
    if (strcmp(move.from.text, move.to.text) != 0 && stored != nullptr &&
        strcmp(stored, move.from.text) == 0)
        raise_suppressed(move.rel);
}

const char* returned_state(const StateMachine* machine) {
    bool is_null;
    Datum state = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
    return state_text(machine, state, is_null);
}

// The statement compares states as their type does, and checks who may.
DirectOutcome transition_without_plan(const Move& move) {
    const StateMachine* machine = move.machine;
    TypeCacheEntry* type = lookup_type_cache(machine->type, TYPECACHE_EQ_OPR_FINFO);
    if (check_function_privilege(type->eq_opr_finfo.fn_oid, GetUserId()) != ACLCHECK_OK)
        return DirectOutcome::kDeclined;
    Oid collation = TupleDescAttr(RelationGetDescr(move.rel), machine->column - 1)->attcollation;
    RowUpdate update = {{move.rel, move.facts, &move.key}, extended(move.changes, 1)};
    assign(&update.changes, machine->column, move.to.value);
    return update_directly(
        update,
        [&](TupleTableSlot* row) {
            bool is_null;
            Datum state = slot_getattr(row, machine->column, &is_null);
            return !is_null && DatumGetBool(FunctionCall2Coll(&type->eq_opr_finfo, collation, state,
                                                              move.from.value));
        },
        [&](TupleTableSlot* row) {
            bool is_null;
            Datum state = slot_getattr(row, machine->column, &is_null);
            require_state(move, state_text(machine, state, is_null));
        });
}

bool run_transition(const Move& move) {
    DirectOutcome direct = transition_without_plan(move);
    if (direct != DirectOutcome::kDeclined)
        return direct == DirectOutcome::kDone;
    bool moved = false;
    with_spi([&] {
        SPIPlanPtr plan = plan_of({RelationGetRelid(move.rel), PlanKind::kTransition,
                                   move.changes.columns, move.machine->column},
                                  [&](Statement* statement) { write_transition(statement, move); });
        Parameters parameters(move.changes.count + move.facts->key_count + 2);
        add_changes(&parameters, move.changes);
        parameters.add(move.to.value);
        add_key(&parameters, move.facts, move.key);
        parameters.add(move.from.value);
        moved = run_plan(plan, parameters) > 0;
        if (moved)
            require_state(move, returned_state(move.machine));
    });
    return moved;
}

// Reads where the row is now: {kStateChanged, state}, or {kNotFound}.
MoveResult look(const Move& move) {
    StoredRow row =
        read_row(move.rel, move.facts, move.key, bms_make_singleton(move.machine->column));
    if (!row.found)
        return {MoveOutcome::kNotFound, nullptr};
    bool is_null;
    Datum value = stored_value(row, move.machine->column, &is_null);
    return {MoveOutcome::kStateChanged, state_text(move.machine, value, is_null)};
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
            return {MoveOutcome::kTransitioned, move.to.text};
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

void raise_state_changed(const Move& move, const char* state) {
    ereport(ERROR, (errcode(kStateChanged),
                    errmsg("state of the row in table \"%s\" is %s, not \"%s\"",
                           RelationGetRelationName(move.rel),
                           state != nullptr ? psprintf("\"%s\"", state) : "null", move.from.text),
                    errdetail_internal(
                        "%s", json_object({{"table", qualified_name(move.rel)},
                                           {"key", nullptr, key_to_text(move.facts, move.key)},
                                           {"column", NameStr(move.machine->name)},
                                           {"expected", move.from.text},
                                           {"state", state}})),
                    errhint("Somebody else was faster: read the row and decide again.")));
}

} // namespace

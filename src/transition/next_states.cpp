// next_states and next_states_many: where a row may go from its current state, and what a guard
// says against it. For the buttons of a page.

#include "execution/key_list.h"
#include "execution/stored_row.h"
#include "server/arguments.h"
#include "server/error.h"
#include "server/result_row.h"
#include "server/subtransaction.h"
#include "table/row.h"
#include "transition/guard.h"
#include "transition/transition.h"

namespace interlock::transition {

namespace {

struct NextCall {
    Relation rel;
    const TableInfo* info;
    const StateMachine* machine;
    const Bitmapset* columns; // to read
    bool may_update;          // the caller, the column of the state
    FmgrInfo* caller;
    ReturnSetInfo* output;
    bool shows_key;
};

// A row whose next states are asked for.
struct CurrentRow {
    const Key* key;
    HeapTuple tuple;
    const char* state; // null for null
};

} // namespace

static NextCall open_call(FunctionCallInfo fcinfo, const Arguments& arguments);
static bool put_next_states(const NextCall& call, const Key& key);

extern "C" {
PG_FUNCTION_INFO_V1(next_states);
PG_FUNCTION_INFO_V1(next_states_many);

// next_states(rel, key, state_column)
Datum next_states(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    NextCall call = open_call(fcinfo, arguments);
    Key key = key_argument(arguments, 1, call.rel, call.info);
    if (!put_next_states(call, key))
        raise_no_such_row(call.rel, call.info, key);
    close_table(call.rel);
    return 0;
}

// next_states_many(rel, keys, state_column): rows that are not there have no lines.
Datum next_states_many(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    NextCall call = open_call(fcinfo, arguments);
    call.shows_key = true;
    KeyList keys = key_list_argument(arguments, 1, call.rel, call.info);
    for (int i = 0; i < keys.count; i++)
        in_scratch([&] { (void)put_next_states(call, keys.keys[i]); });
    close_table(call.rel);
    return 0;
}
}

// --- The call ------------------------------------------------------------------------------------

// A guard is asked with the whole row.
static const Bitmapset* columns_to_read(Relation rel, const StateMachine* machine) {
    Bitmapset* columns = bms_make_singleton(machine->column);
    TupleDesc all = RelationGetDescr(rel);
    for (int i = 0; machine->guard_count > 0 && i < all->natts; i++)
        if (!TupleDescAttr(all, i)->attisdropped)
            columns = bms_add_member(columns, i + 1);
    return columns;
}

static NextCall open_call(FunctionCallInfo fcinfo, const Arguments& arguments) {
    InitMaterializedSRF(fcinfo, 0);
    NextCall call = {};
    call.output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    call.caller = fcinfo->flinfo;
    call.rel = open_table(arguments.relation(0), AccessShareLock, ACL_SELECT);
    call.info = table_info(call.rel);
    const char* column =
        arguments.is_null(2) ? nullptr : NameStr(*DatumGetName(arguments.value(2)));
    call.machine = find_machine(call.rel, call.info, column);
    call.columns = columns_to_read(call.rel, call.machine);
    call.may_update = has_column_privilege(call.info->relid, call.machine->column, ACL_UPDATE);
    return call;
}

// --- Guards --------------------------------------------------------------------------------------

static TupleTableSlot* slot_of(TupleDesc columns, HeapTuple tuple) {
    TupleTableSlot* slot = MakeSingleTupleTableSlot(columns, &TTSOpsVirtual);
    heap_deform_tuple(tuple, columns, slot->tts_values, slot->tts_isnull);
    return ExecStoreVirtualTuple(slot);
}

// Asks with the row as it is and as it would be. What the guard writes is undone: this is no change
// of the row.
static const char* ask(const NextCall& call, const CurrentRow& row, const char* state,
                       const Guard& guard) {
    const StateMachine* machine = call.machine;
    TupleDesc columns = RelationGetDescr(call.rel);
    RowChange change = {
        call.rel, call.info, slot_of(columns, row.tuple), slot_of(columns, row.tuple),
        nullptr,  nullptr};
    int at = machine->column - 1;
    change.new_row->tts_values[at] = state_datum(machine->type, machine->typmod, pstrdup(state));
    change.new_row->tts_isnull[at] = false;
    const char* objection = objection_of(guard, machine, change, call.caller);
    ExecDropSingleTupleTableSlot(change.old_row);
    ExecDropSingleTupleTableSlot(change.new_row);
    return objection;
}

// Null when nothing is against it. A guard that raises an error refuses.
static const char* objection_to(const NextCall& call, const CurrentRow& row, const char* state) {
    if (!call.may_update)
        return psprintf("permission denied to update column \"%s\"", NameStr(call.machine->name));
    const Guard* guard = guard_of(call.machine, row.state, state);
    if (guard == nullptr)
        return nullptr;
    MemoryContext memory = CurrentMemoryContext;
    const char* objection = nullptr;
    const ErrorData* error = attempt_if([&] {
        const char* said =
            in_context(CurTransactionContext, [&] { return ask(call, row, state, *guard); });
        objection = said != nullptr ? MemoryContextStrdup(memory, said) : nullptr;
        return false;
    });
    if (error == nullptr)
        return objection;
    forget_functions(call.caller); // what the function kept may be half made
    return error->message;
}

// --- Rows ----------------------------------------------------------------------------------------

static void put_state(const NextCall& call, const CurrentRow& row, const char* state) {
    const char* objection = objection_to(call, row, state);
    Datum values[4] = {0, CStringGetTextDatum(state), BoolGetDatum(objection == nullptr)};
    bool nulls[4] = {false, false, false, objection == nullptr};
    if (objection != nullptr)
        values[3] = CStringGetTextDatum(objection);
    if (call.shows_key)
        values[0] = key_to_jsonb(call.info, *row.key);
    int first = call.shows_key ? 0 : 1;
    add_result_row(call.output, 4 - first, values + first, nulls + first);
}

// False when there is no such row.
static bool put_next_states(const NextCall& call, const Key& key) {
    CHECK_FOR_INTERRUPTS();
    StoredRow stored =
        read_row(call.rel, call.info, key, with_table_key(call.rel, call.info, key, call.columns));
    if (!stored.found)
        return false;
    bool is_null;
    Datum value = stored_value(stored, call.machine->column, &is_null);
    CurrentRow row = {table_key(call.info, key, stored), stored_row_as_tuple(stored, call.info),
                      state_text(call.machine, value, is_null)};
    ListCell* cell;
    foreach (cell, states_after(call.machine, row.state))
        put_state(call, row, static_cast<const char*>(lfirst(cell)));
    return true;
}

} // namespace interlock::transition

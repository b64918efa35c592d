// lock_rows: the markers of several rows for one holder, all or none.
//
// The rows are locked in the order of their keys before any of them is marked. Afterwards their
// markers stand still, so that none is marked where one is held by another: a refusal leaves no
// dead rows, and its row locks end with the subtransaction that took them.

#include "execution/key_list.h"
#include "marker/call.h"
#include "server/arguments.h"
#include "server/json_builder.h"
#include "server/result_row.h"
#include "server/scope.h"
#include "server/subtransaction.h"
#include "table/row_json.h"

namespace interlock::marker {

constexpr int kAttempts = 10;

namespace {

struct RowsCall {
    MarkedRow row; // its key is set to each key in turn
    KeyList keys;
    int64 ttl;
    const char* reason;
    MemoryContext scratch; // for one row
};

} // namespace

static RowsCall read_call(const Arguments& arguments);
static JsonbValue* find_held(RowsCall* call);
static void lock_all(RowsCall* call);
static TimestampTz mark_all(RowsCall* call);
static Datum answer(FunctionCallInfo fcinfo, JsonbValue* held, TimestampTz until);

extern "C" {
PG_FUNCTION_INFO_V1(lock_rows);

// lock_rows(rel, keys, holder, ttl, reason) -> (locked, blocked, expires_at)
Datum lock_rows(PG_FUNCTION_ARGS) {
    RowsCall call = read_call(Arguments(fcinfo));
    TimestampTz until = DT_NOEND;
    JsonbValue* held = find_held(&call); // a refusal at this point locks no row
    ErrorData* error = nullptr;
    if (held == nullptr && call.keys.count > 0)
        error = attempt_if([&] {
            lock_all(&call);
            held = find_held(&call);
            if (held == nullptr)
                until = mark_all(&call);
            return held == nullptr;
        });
    if (error != nullptr)
        ReThrowError(error);
    for (int i = 0; i < call.keys.count; i++)
        count_call(call.row, held != nullptr && i < held->val.array.nElems);
    close_table(call.row.rel);
    return answer(fcinfo, held, until);
}
}

// --- Arguments -----------------------------------------------------------------------------------

// As a literal that can be typed, unless it is long.
static const char* typed_keys(const Arguments& arguments) {
    if (arguments.is_null(1))
        return "keys";
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(arguments.type(1), &output, &is_varlena);
    const char* keys = OidOutputFunctionCall(output, arguments.value(1));
    return strlen(keys) < NAMEDATALEN ? quote_literal_cstr(keys) : "keys";
}

// In other libraries a call without a holder locks rows; that function has another name here.
static void require_holder(const Arguments& arguments) {
    if (!arguments.is_null(2))
        return;
    const char* table =
        DatumGetCString(DirectFunctionCall1(regclassout, ObjectIdGetDatum(arguments.relation(0))));
    ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                    errmsg("argument \"%s\" must not be null", "holder"),
                    errhint("To lock rows until the end of the transaction, use: SELECT * FROM "
                            "interlock.select_for_update(%s, %s). To mark them, give a holder as "
                            "the third argument.",
                            quote_literal_cstr(table), typed_keys(arguments))));
}

static RowsCall read_call(const Arguments& arguments) {
    require_holder(arguments);
    RowsCall call = {};
    call.row = open_rows(arguments, check_holder(arguments.string(2, "holder")));
    call.keys = key_list_argument(arguments, 1, call.row.rel, call.row.info);
    call.ttl = ttl_argument(arguments, 3, call.row.marker);
    call.reason = arguments.string_or_null(4);
    call.scratch = AllocSetContextCreate(CurrentMemoryContext, "lock_rows", ALLOCSET_DEFAULT_SIZES);
    return call;
}

// --- The rows ------------------------------------------------------------------------------------

template <typename Visit>
static void each_row(RowsCall* call, Visit&& visit) {
    for (int i = 0; i < call->keys.count; i++) {
        CHECK_FOR_INTERRUPTS();
        call->row.key = call->keys.keys[i];
        in_context(call->scratch, [&] {
            visit();
            return 0;
        });
        MemoryContextReset(call->scratch);
    }
}

static void add_held(JsonBuilder* builder, const MarkedRow& row, const Look& found) {
    TupleDesc columns = CreateTemplateTupleDesc(3);
    TupleDescInitEntry(columns, 1, "key", JSONBOID, -1, 0);
    TupleDescInitEntry(columns, 2, "holder", TEXTOID, -1, 0);
    TupleDescInitEntry(columns, 3, "expires_at", TIMESTAMPTZOID, -1, 0);
    Datum values[3] = {key_to_jsonb(row.info, *found.key), CStringGetTextDatum(found.state.holder),
                       TimestampTzGetDatum(found.state.until)};
    bool nulls[3] = {};
    Jsonb* json = DatumGetJsonbP(row_to_jsonb(columns, heap_form_tuple(columns, values, nulls)));
    JsonbValue object;
    JsonbToJsonbValue(json, &object);
    builder->push(WJB_ELEM, &object);
}

// The rows with a live marker of another holder, as an array of {key, holder, expires_at}; null
// when there are none.
static JsonbValue* find_held(RowsCall* call) {
    MemoryContext caller = CurrentMemoryContext;
    JsonBuilder builder;
    bool found_any = false;
    each_row(call, [&] {
        Look found = look(call->row);
        if (!found.found)
            raise_no_such_row(call->row.rel, call->row.info, call->row.key);
        if (!is_held_by_other(call->row, found))
            return;
        MemoryContextSwitchTo(caller);
        if (!found_any)
            builder.push(WJB_BEGIN_ARRAY);
        found_any = true;
        add_held(&builder, call->row, found);
        MemoryContextSwitchTo(call->scratch);
    });
    if (!found_any)
        return nullptr;
    builder.push(WJB_END_ARRAY);
    return builder.value();
}

// A row that is not found by a lock may have been deleted and inserted again in the wait for it.
static void lock(const MarkedRow& row) {
    for (int i = 0; i < kAttempts; i++) {
        if (look(row, {RowStrength::kNoKeyUpdate, RowWait::kWait, CountedKind::kMarker}).found)
            return;
        if (!look(row).found)
            raise_no_such_row(row.rel, row.info, row.key);
    }
    raise_suppressed(row.rel);
}

static void lock_all(RowsCall* call) {
    each_row(call, [&] { lock(call->row); });
}

// Returns the earliest deadline.
static TimestampTz mark_all(RowsCall* call) {
    TimestampTz until = DT_NOEND;
    each_row(call, [&] {
        MarkerState held = {};
        if (!take_marker(call->row, call->ttl, call->reason, &held))
            raise_suppressed(call->row.rel);
        until = Min(until, held.until);
    });
    return until;
}

static Datum answer(FunctionCallInfo fcinfo, JsonbValue* held, TimestampTz until) {
    Datum values[3] = {BoolGetDatum(held == nullptr)};
    bool nulls[3] = {false, held == nullptr, held != nullptr || until == DT_NOEND};
    if (!nulls[1])
        values[1] = JsonbPGetDatum(JsonbValueToJsonb(held));
    if (!nulls[2])
        values[2] = TimestampTzGetDatum(until);
    return result_row(fcinfo, values, nulls);
}

} // namespace interlock::marker

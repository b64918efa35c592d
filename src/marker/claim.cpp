// claim_rows: the markers of rows that are free, for a worker that takes the next ones of a queue.
//
//     SELECT key FROM table WHERE it is free AND it matches ORDER BY column LIMIT n
//     FOR NO KEY UPDATE SKIP LOCKED
//
// Rows that another transaction has locked are passed over, so that workers neither wait for each
// other nor get the same rows. Under READ COMMITTED the lock looks at the newest version of the
// row: one that has been taken since is passed over, too. The rows stay locked until the end of the
// transaction, so that their markers stand still until they are taken, one after the other, as
// lock_row takes one.

#include "execution/read.h"
#include "execution/stored_row.h"
#include "execution/update.h"
#include "marker/call.h"
#include "server/arguments.h"
#include "server/result_row.h"
#include "server/scope.h"
#include "table/match.h"
#include "table/row_json.h"

namespace interlock::marker {

namespace {

struct ClaimCall {
    MarkedRow row; // its key is set to each key in turn
    int32 max_rows;
    Match match;
    AttrNumber order; // InvalidAttrNumber: the rows come in any order
    int64 ttl;
    ReturnSetInfo* output;
    MemoryContext scratch; // for one row
};

// Rows that are locked: free ones, and later those that have been taken.
struct FreeRow {
    Key key;
    TimestampTz until; // once it has been taken
};
struct FreeRows {
    FreeRow* rows;
    uint64 count;
};

} // namespace

static ClaimCall read_call(const Arguments& arguments, ReturnSetInfo* output);
static FreeRows lock_free(const ClaimCall& call);
static void take(ClaimCall* call, FreeRows* rows);
static void return_rows(ClaimCall* call, const FreeRows& rows);

extern "C" {
PG_FUNCTION_INFO_V1(claim_rows);

// claim_rows(rel, holder, max_rows, match, order_column, ttl) -> setof (key, current, expires_at)
Datum claim_rows(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    ClaimCall call =
        read_call(Arguments(fcinfo), reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo));
    FreeRows rows = lock_free(call);
    take(&call, &rows);
    if (rows.count > 0)
        return_rows(&call, rows);
    close_table(call.row.rel);
    return 0;
}
}

// --- Arguments -----------------------------------------------------------------------------------

static AttrNumber order_argument(const Arguments& arguments, int n, const MarkedRow& row) {
    if (arguments.is_null(n))
        return InvalidAttrNumber;
    const char* name = arguments.name(n, "order_column");
    AttrNumber column = column_number(row.rel, name);
    Oid type = TupleDescAttr(row.info->columns, column - 1)->atttypid;
    if (!OidIsValid(lookup_type_cache(type, TYPECACHE_LT_OPR)->lt_opr))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                        errmsg("rows of table \"%s\" cannot be sorted by column \"%s\": type %s "
                               "has no ordering operator",
                               RelationGetRelationName(row.rel), name, format_type_be(type)),
                        errhint("Name a column with a number, a time or a text.")));
    return column;
}

static ClaimCall read_call(const Arguments& arguments, ReturnSetInfo* output) {
    ClaimCall call = {};
    const char* holder = check_holder(arguments.string(1, "holder"));
    call.max_rows = above_zero(DatumGetInt32(arguments.required(2, "max_rows")), "max_rows");
    call.row = open_rows(arguments, holder);
    require_key(call.row.rel, call.row.info);
    call.match = match_argument(arguments, 3, call.row.rel, call.row.info);
    call.order = order_argument(arguments, 4, call.row);
    call.ttl = ttl_argument(arguments, 5, call.row.marker);
    call.output = output;
    call.scratch =
        AllocSetContextCreate(CurrentMemoryContext, "claim_rows", ALLOCSET_DEFAULT_SIZES);
    return call;
}

// --- Rows that are free --------------------------------------------------------------------------

// A number of rows for the planner, which would take a parameter for a tenth of the table: the
// least power of two that is enough.
static int64 planned_rows(const ClaimCall& call) {
    int64 rows = 1;
    while (rows < call.max_rows)
        rows *= 2;
    return rows;
}

static void add_key_columns(Statement* statement, const ClaimCall& call) {
    const UniqueKey& key = call.row.info->key;
    for (int i = 0; i < key.count; i++)
        statement->add("%st.%s", i > 0 ? ", " : "",
                       quote_identifier(column_name(call.row.info, key.columns[i].attnum)));
}

// A row whose status is neither 0 nor 1 is not free (marker/trigger.cpp). The planner takes half of
// the rows for free, whatever it knows of their status: statistics of a queue are soon out of date.
static void add_is_free(Statement* statement, const Marker* marker) {
    const char* status = quoted(marker, kStatus);
    statement->add(
        "CASE WHEN t.%s OPERATOR(pg_catalog.=) 1 THEN t.%s OPERATOR(pg_catalog.>) "
        "pg_catalog.clock_timestamp() ELSE t.%s OPERATOR(pg_catalog.<>) 0 END "
        "IS NOT TRUE",
        status, quoted(marker, kUntil), status);
}

constexpr RowLock kLockOfFree = {RowStrength::kNoKeyUpdate, RowWait::kSkipLocked};

static void write_search(Statement* statement, const ClaimCall& call) {
    const TableInfo* info = call.row.info;
    statement->add("SELECT ");
    add_key_columns(statement, call);
    statement->add(" FROM %s t WHERE ", rows_of(call.row.rel));
    add_is_free(statement, call.row.marker);
    add_match(statement, info, call.match);
    if (call.order != InvalidAttrNumber)
        statement->add(" ORDER BY t.%s", quote_identifier(column_name(info, call.order)));
    statement->add(" LIMIT " INT64_FORMAT, planned_rows(call));
    add_row_lock(statement, kLockOfFree);
}

// What the statement depends on: the columns that match, the one that orders, and the limit.
static PlanShape shape_of(const ClaimCall& call) {
    PlanShape shape = {RelationGetRelid(call.row.rel), PlanKind("marker_claim")};
    shape.columns = plan_columns(call.row.rel, call.row.info, call.match);
    shape.subject = call.order;
    shape.key = static_cast<Oid>(planned_rows(call));
    shape.in_order = call.order != InvalidAttrNumber;
    return shape;
}

static void require_key_columns(const ClaimCall& call) {
    const UniqueKey& key = call.row.info->key;
    AttrNumber columns[INDEX_MAX_KEYS];
    for (int i = 0; i < key.count; i++)
        columns[i] = key.columns[i].attnum;
    require_columns(call.row.info, columns, key.count);
}

static Key key_of(const ClaimCall& call, HeapTuple tuple, TupleDesc columns) {
    Key key = {};
    key.by = &call.row.info->key;
    for (int i = 0; i < key.by->count; i++) {
        Form_pg_attribute attribute = TupleDescAttr(columns, i);
        bool is_null;
        Datum value = heap_getattr(tuple, i + 1, columns, &is_null);
        key.values[i] = datumCopy(value, attribute->attbyval, attribute->attlen);
    }
    return key;
}

static FreeRows lock_free(const ClaimCall& call) {
    prevent_in_parallel_mode(kLockOfFree);
    FreeRows rows = {};
    MemoryContext caller = CurrentMemoryContext;
    with_spi([&] {
        TablePlan plan =
            plan_of(shape_of(call), [&](Statement* statement) { write_search(statement, call); });
        Parameters parameters(bms_num_members(call.match.equal) + 1);
        add_match_values(&parameters, call.row.info, call.match);
        rows.count = run_plan(plan, parameters, call.max_rows); // locks no row behind the last
        SPITupleTable* found = SPI_tuptable;
        require_key_columns(call);
        in_context(caller, [&] {
            rows.rows = static_cast<FreeRow*>(
                palloc_extended(sizeof(FreeRow) * (rows.count + 1), MCXT_ALLOC_HUGE));
            for (uint64 i = 0; i < rows.count; i++)
                rows.rows[i].key = key_of(call, found->vals[i], found->tupdesc);
            return 0;
        });
    });
    return rows;
}

// --- Taking them ---------------------------------------------------------------------------------

// Calls visit(i) for each row, whose key the call then has.
template <typename Visit>
static void each_row(ClaimCall* call, const FreeRows& rows, Visit&& visit) {
    for (uint64 i = 0; i < rows.count; i++) {
        CHECK_FOR_INTERRUPTS();
        call->row.key = rows.rows[i].key;
        in_context(call->scratch, [&] {
            visit(i);
            return 0;
        });
        MemoryContextReset(call->scratch);
    }
}

// A locked row is not free any more if a trigger on an earlier one has taken or deleted it.
static bool take_row(const ClaimCall& call, TimestampTz* until, OpenUpdates* open) {
    MarkerState held = {};
    if (take_marker(call.row, call.ttl, nullptr, &held, open)) {
        *until = held.until;
        return true;
    }
    Look found = look(call.row);
    if (found.found && !found.state.live)
        raise_suppressed(call.row.rel);
    return false;
}

static void take(ClaimCall* call, FreeRows* rows) {
    OpenUpdates open = {CurrentMemoryContext};
    uint64 taken = 0;
    each_row(call, *rows, [&](uint64 i) {
        TimestampTz until;
        bool is_taken = take_row(*call, &until, &open);
        count_call(call->row, !is_taken);
        if (is_taken)
            rows->rows[taken++] = {rows->rows[i].key, until};
    });
    close_updates(&open);
    rows->count = taken;
}

// --- The answer ----------------------------------------------------------------------------------

static void return_row(const ClaimCall& call, Datum current, TimestampTz until) {
    Datum values[3] = {key_to_jsonb(call.row.info, call.row.key), current,
                       TimestampTzGetDatum(until)};
    bool nulls[3] = {};
    add_result_row(call.output, values, nulls);
}

// As they are once all have been taken. No code of others runs in between.
static void return_rows(ClaimCall* call, const FreeRows& rows) {
    const MarkedRow& row = call->row;
    const Bitmapset* shown = readable_columns(row.rel);
    DirectReads reads;
    bool direct = begin_direct_reads(&reads, row.rel, row.info, &row.info->key, {});
    JsonMembers members = json_members(RelationGetDescr(row.rel), shown);
    each_row(call, rows, [&](uint64 i) {
        if (direct) {
            (void)read_next_directly(reads, row.key, [&](TupleTableSlot* version) {
                return_row(*call,
                           members_to_jsonb(RelationGetDescr(row.rel), members, values_in(version)),
                           rows.rows[i].until);
            });
            return;
        }
        StoredRow stored = read_row(row.rel, row.info, row.key, shown);
        if (stored.found)
            return_row(*call, stored_row_to_jsonb(stored), rows.rows[i].until);
    });
    if (direct)
        end_direct_reads(reads);
}

} // namespace interlock::marker

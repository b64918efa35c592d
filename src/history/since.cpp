// history_since: what has been committed since a position, for readers that must miss nothing and
// see nothing twice.
//
// New are the entries of transactions that are over now and were not at the position. A
// page of them goes up to an id: a transaction that wrote a row later wrote its entry under a
// higher id, so that the entries of a row come in their order. Where an AFTER trigger has written a
// row again, ids of one transaction are in another order than its commands: a page that would end
// between two such entries is longer.
//
// Isolation: the position and the entries are of one snapshot, or the entries are of a later one,
// in which those of the position are all there.

#include "history/position.h"
#include "history/read.h"
#include "history/short_entry.h"
#include "server/scope.h"
#include "table/plan.h"

namespace interlock::history {

namespace {

// The entries that a call is about.
struct News {
    HistoryRead read;
    SeenTransactions seen;
    SeenTransactions now;
    int64 after;    // their ids are above this one
    bool by_number; // few of all transactions may be new: find them by their numbers
};

} // namespace

static News find_news(const HistoryRead& read, const Position& position, bool has_position);
static int64 end_of_page(const News& news, int32 max_rows);
static void list_news(const News& news, int64 end, const char* position, ReturnSetInfo* output);

extern "C" {
PG_FUNCTION_INFO_V1(history_since);
PG_FUNCTION_INFO_V1(history_position);

// history_since(rel, since, max_rows)
Datum history_since(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    Arguments arguments(fcinfo);
    bool has_position = !arguments.is_null(1);
    Position position = {};
    if (has_position)
        position = parse_position(arguments.string(1, "since"));
    int32 max_rows =
        arguments.is_null(2) ? 0 : above_zero(DatumGetInt32(arguments.value(2)), "max_rows");
    HistoryRead read = open_history(arguments.relation(0), AccessShareLock);
    News news = find_news(read, position, has_position);
    int64 end = max_rows == 0 ? PG_INT64_MAX : end_of_page(news, max_rows);
    bool is_last = end == PG_INT64_MAX;
    Position next = {is_last ? news.now : news.seen, !is_last, news.now, end};
    list_news(news, end, print_position(next), output);
    close_table(read.rel);
    return 0;
}

Datum history_position(FunctionCallInfo) {
    PG_RETURN_TEXT_P(cstring_to_text(print_position({seen_now(), false, {}, 0})));
}
}

static News find_news(const HistoryRead& read, const Position& position, bool has_position) {
    News news = {read, position.seen, position.reading, position.id, false};
    if (!has_position)
        news.seen = {1, 1, PointerGetDatum(construct_empty_array(INT8OID))};
    if (!position.is_inside)
        news.now = seen_now();
    news.by_number = has_position && !position.is_inside;
    return news;
}

// The condition on entry h, as parameters 1 to 6.
static void add_condition(Statement* statement) {
    for (Oid type : {INT8OID, INT8OID, INT8ARRAYOID, INT8OID, INT8ARRAYOID, INT8OID})
        (void)statement->parameter(type);
    statement->add(
        "h.transaction OPERATOR(pg_catalog.>=) $1 AND "
        "(h.transaction OPERATOR(pg_catalog.>=) $2 OR h.transaction OPERATOR(pg_catalog.=) ANY "
        "($3)) AND h.transaction OPERATOR(pg_catalog.<) $4 AND h.transaction "
        "OPERATOR(pg_catalog.<>) ALL ($5) AND h.id OPERATOR(pg_catalog.>) $6");
}

static void add_condition_values(Parameters* parameters, const News& news) {
    parameters->add(Int64GetDatum(static_cast<int64>(news.seen.xmin)));
    parameters->add(Int64GetDatum(static_cast<int64>(news.seen.xmax)));
    parameters->add(news.seen.running);
    parameters->add(Int64GetDatum(static_cast<int64>(news.now.xmax)));
    parameters->add(news.now.running);
    parameters->add(Int64GetDatum(news.after));
}
constexpr int kConditionValues = 6;

static int64 integer_at(uint64 row, bool* is_null) {
    require_result({INT8OID});
    return DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, 1, is_null));
}

// The id of the last of `max_rows` entries; PG_INT64_MAX when no more follow. Ordering by an
// expression keeps the server from looking for them in the order of all ids.
static int64 find_end(const News& news, int32 max_rows) {
    Oid table = news.read.history->table;
    PlanShape shape = {table, PlanKind("history_page")};
    shape.subject = news.by_number ? 1 : 0;
    TablePlan plan = plan_of(shape, [&](Statement* statement) {
        statement->add("SELECT h.id FROM %s h WHERE ", qualified_name(table));
        add_condition(statement);
        statement->add(" ORDER BY h.id%s OFFSET $%d LIMIT 2",
                       news.by_number ? " OPERATOR(pg_catalog.+) 0" : "",
                       statement->parameter(INT8OID));
    });
    Parameters parameters(kConditionValues + 1);
    add_condition_values(&parameters, news);
    parameters.add(Int64GetDatum(max_rows - 1));
    bool is_null;
    return run_plan(plan, parameters) < 2 ? PG_INT64_MAX : integer_at(0, &is_null);
}

// The highest id of an entry behind the end that comes before another one of its row and
// transaction in front of it; `end` when there is none.
static int64 extend(const News& news, int64 end) {
    Oid table = news.read.history->table;
    TablePlan plan = plan_of({table, PlanKind("history_page_end")}, [&](Statement* statement) {
        statement->add(
            "SELECT pg_catalog.max(f.id) FROM %s h JOIN %s f ON "
            "pg_catalog.jsonb_hash_extended(f.key, 0) OPERATOR(pg_catalog.=) "
            "pg_catalog.jsonb_hash_extended(h.key, 0) AND f.key OPERATOR(pg_catalog.=) "
            "h.key AND f.transaction OPERATOR(pg_catalog.=) h.transaction AND f.command "
            "OPERATOR(pg_catalog.<) h.command WHERE ",
            qualified_name(table), qualified_name(table));
        add_condition(statement);
        int id = statement->parameter(INT8OID);
        statement->add(" AND h.id OPERATOR(pg_catalog.<=) $%d AND f.id OPERATOR(pg_catalog.>) $%d",
                       id, id);
    });
    Parameters parameters(kConditionValues + 1);
    add_condition_values(&parameters, news);
    parameters.add(Int64GetDatum(end));
    run_plan(plan, parameters);
    bool is_null;
    int64 found = integer_at(0, &is_null);
    return is_null ? end : found;
}

static int64 end_of_page(const News& news, int32 max_rows) {
    int64 end = 0;
    with_spi([&] {
        end = find_end(news, max_rows);
        for (int64 before = 0; end != PG_INT64_MAX && end != before;) {
            before = end;
            end = extend(news, end);
        }
    });
    return end;
}

// In the order of ids but for the entries that one transaction has written of a row.
static void list_news(const News& news, int64 end, const char* position, ReturnSetInfo* output) {
    Oid table = news.read.history->table;
    with_spi([&] {
        TablePlan plan = plan_of({table, PlanKind("history_since")}, [&](Statement* statement) {
            statement->add(
                "SELECT h.id, h.key, h.operation, h.version, %s, h.changed, h.before, "
                "h.writer, h.changed_by, h.changed_at, h.transaction, h.writer_from, h.context, "
                "p.up_to FROM %s h, (SELECT $7::pg_catalog.text, $8::pg_catalog.int8) p (up_to, "
                "last) WHERE ",
                whole_row_sql(table), qualified_name(table));
            add_condition(statement);
            (void)statement->parameter(TEXTOID);
            (void)statement->parameter(INT8OID);
            statement->add(
                " AND h.id OPERATOR(pg_catalog.<=) p.last ORDER BY pg_catalog.max(h.id) OVER "
                "(PARTITION BY h.transaction), h.command, h.id");
        });
        Parameters parameters(kConditionValues + 2);
        add_condition_values(&parameters, news);
        parameters.add(CStringGetTextDatum(position));
        parameters.add(Int64GetDatum(end));
        uint64 count = run_plan(plan, parameters);
        require_result({INT8OID, JSONBOID, TEXTOID, INT8OID, JSONBOID, TEXTARRAYOID, JSONBOID,
                        TEXTOID, TEXTOID, TIMESTAMPTZOID, INT8OID, TEXTOID, JSONBOID, TEXTOID});
        for (uint64 i = 0; i < count; i++)
            tuplestore_puttuple(output->setResult, SPI_tuptable->vals[i]);
    });
}

} // namespace interlock::history

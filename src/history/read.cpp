// Reading history, with the caller's own privileges on the history table and under its policies.

#include "history/read.h"

#include "execution/stored_row.h"
#include "history/short_entry.h"
#include "marker/marker.h"
#include "server/error.h"
#include "server/result_row.h"
#include "server/scope.h"
#include "table/mechanism.h"
#include "table/plan.h"
#include "table/row.h"

namespace interlock::history {

static Datum hidden_columns(const Arguments& arguments, int n, const Question& question);
static void list_entries(const Question& question, Datum hidden, ReturnSetInfo* output);

extern "C" {
PG_FUNCTION_INFO_V1(row_history);
PG_FUNCTION_INFO_V1(row_as_of);

// row_history(rel, key, markers)
Datum row_history(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
    Arguments arguments(fcinfo);
    Question question = read_question(arguments, AccessShareLock);
    list_entries(question, hidden_columns(arguments, 2, question),
                 reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo));
    close_table(question.rel);
    return 0;
}

// row_as_of(rel, key, at)
Datum row_as_of(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Question question = read_question(arguments, AccessShareLock);
    TimestampTz at = DatumGetTimestampTz(arguments.required(2, "at"));
    NullableDatum state = state_at(question, at);
    close_table(question.rel);
    if (state.isnull)
        PG_RETURN_NULL();
    return state.value;
}
}

[[noreturn]] static void raise_unresolved(const Question& question, const Key& key) {
    const char* shown = key_to_text(question.info, key);
    ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND),
                    errmsg("table \"%s\" has no such row", RelationGetRelationName(question.rel)),
                    errdetail_internal("%s", json_object({{"table", shown_name(question.rel)},
                                                          {"key", nullptr, shown}})),
                    errhint("History is stored by the key %s. If the row is gone, or had other "
                            "values at that time, name it by this key.",
                            list_of_columns(question.info, question.info->key))));
}

// Entries are stored by the table's key: the one of the row that has another key now.
static Key key_of_entries(const Question& question, const Key& key) {
    if (is_named_by_table_key(question.info, key))
        return key;
    StoredRow row = read_row(question.rel, question.info, key, question.info->key.attnums);
    if (!row.found)
        raise_unresolved(question, key);
    return *table_key(question.info, key, row);
}

// Without it the statements below would fail, with themselves as the context and no hint. SELECT on
// some columns may be enough for them.
static void require_select(Relation entries) {
    if (!has_any_privilege(RelationGetRelid(entries), ACL_SELECT))
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                 errmsg("permission denied for table %s", RelationGetRelationName(entries)),
                 errhint("The history is read with your own privileges. Its owner can grant: GRANT "
                         "SELECT ON %s TO %s;",
                         qualified_name(entries),
                         quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

// The names of the marker's columns, if the answer is without them; otherwise 0.
static Datum hidden_columns(const Arguments& arguments, int n, const Question& question) {
    const marker::Marker* marker = marker::marker_of(question.info);
    bool shows_markers =
        arguments.is_null(n) ? question.history->record_markers : DatumGetBool(arguments.value(n));
    return marker == nullptr || shows_markers
               ? 0
               : column_names(question.info->columns, marker->attnums);
}

// In their order. The same transaction number can occur again after a restore into another server.
static void write_list(Statement* statement, Oid entries) {
    statement->add(
        "SELECT h.version, h.changed_at, h.writer, h.operation, %s, h.changed, h.before, "
        "h.changed_by, h.id, h.writer_from, h.context FROM (SELECT h.version, h.changed_at, "
        "h.writer, h.operation, h.row_data, h.changed, h.before, h.changed_by, h.id, "
        "h.writer_from, h.context, h.builds_on, h.distance, h.row_hash, h.transaction, h.command, "
        "pg_catalog.lag(h.transaction) OVER (ORDER BY h.id) AS previous FROM %s h",
        whole_row_sql(entries), qualified_name(entries));
    add_entry_key(statement, statement->parameter(JSONBOID));
    statement->add(
        ") h ORDER BY pg_catalog.count(*) FILTER (WHERE (h.previous OPERATOR(pg_catalog.=) "
        "h.transaction) IS NOT TRUE) OVER (ORDER BY h.id), h.command, h.id");
}

static Datum without_members(Datum json, Datum hidden) {
    bool is_scalar = JB_ROOT_IS_SCALAR(DatumGetJsonbP(json)); // the owner has written it
    return is_scalar ? json : DirectFunctionCall2(jsonb_delete_array, json, hidden);
}

static bool has_element(Datum array, Datum text) {
    Datum* elements;
    int count;
    deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false, TYPALIGN_INT, &elements,
                      nullptr, &count);
    for (int i = 0; i < count; i++)
        if (datum_image_eq(elements[i], text, false, -1))
            return true;
    return false;
}

static Datum without_elements(Datum names, Datum hidden) {
    Datum* elements;
    bool* nulls;
    int count;
    deconstruct_array(DatumGetArrayTypeP(names), TEXTOID, -1, false, TYPALIGN_INT, &elements,
                      &nulls, &count);
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (!nulls[i] && !has_element(hidden, elements[i]))
            elements[kept++] = elements[i];
    return PointerGetDatum(construct_array(elements, kept, TEXTOID, -1, false, TYPALIGN_INT));
}

// Adds an entry of the list without the hidden names.
static void add_entry(ReturnSetInfo* output, HeapTuple entry, Datum hidden) {
    enum { kRow = 4, kChanged = 5, kBefore = 6, kColumns = 11 };
    Datum values[kColumns];
    bool nulls[kColumns];
    heap_deform_tuple(entry, SPI_tuptable->tupdesc, values, nulls);
    for (int column : {kRow, kBefore})
        if (!nulls[column])
            values[column] = without_members(values[column], hidden);
    if (!nulls[kChanged])
        values[kChanged] = without_elements(values[kChanged], hidden);
    add_result_row(output, values, nulls);
}

static void list_entries(const Question& question, Datum hidden, ReturnSetInfo* output) {
    with_spi([&] {
        PlanShape shape = {question.history->table, PlanKind("history_list")};
        shape.by_index = true;
        TablePlan plan = plan_of(
            shape, [&](Statement* statement) { write_list(statement, question.history->table); });
        Parameters parameters(1);
        parameters.add(question.entry_key);
        uint64 count = run_plan(plan, parameters);
        require_result({INT8OID, TIMESTAMPTZOID, TEXTOID, TEXTOID, JSONBOID, TEXTARRAYOID, JSONBOID,
                        TEXTOID, INT8OID, TEXTOID, JSONBOID});
        for (uint64 i = 0; i < count; i++) {
            HeapTuple entry = SPI_tuptable->vals[i];
            if (hidden != 0)
                add_entry(output, entry, hidden);
            else
                tuplestore_puttuple(output->setResult, entry);
        }
    });
}

// --- As of a time --------------------------------------------------------------------------------

namespace {

// The result of a query for one jsonb: whether there was a row, and its value.
struct Answer {
    bool found;
    NullableDatum value;
};

} // namespace

static Answer answer_of(TablePlan plan, const Parameters& parameters) {
    Answer answer = {false, {0, true}};
    answer.found = run_plan(plan, parameters, 1) > 0;
    if (!answer.found)
        return answer;
    require_result({JSONBOID});
    Datum value =
        SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &answer.value.isnull);
    if (!answer.value.isnull)
        answer.value.value = SPI_datumTransfer(value, false, -1);
    return answer;
}

namespace {

// Which end of the entries that meet a condition, in their order.
struct End {
    const char* order;
    const char* beyond;
    const char* within;
    const char* nowhere;
};

} // namespace

constexpr End kLast = {"DESC", "<", ">", "0"};
constexpr End kFirst = {"ASC", ">", "<", "9223372036854775807"};

// Reads the entry of the key $1 at that end. The entries of its transaction are found by their ids.
static void write_end(Statement* statement, const End& end, const char* table, const char* selected,
                      const char* condition) {
    statement->add("WITH e AS MATERIALIZED (SELECT h.id, h.transaction FROM %s h", table);
    add_entry_key(statement, 1);
    statement->add(" AND %s ORDER BY h.id %s LIMIT 1) SELECT %s FROM %s h, e", condition, end.order,
                   selected, table);
    add_entry_key(statement, 1);
    statement->add(
        " AND %s AND h.transaction OPERATOR(pg_catalog.=) e.transaction AND h.id "
        "OPERATOR(pg_catalog.%s) COALESCE((SELECT h.id FROM %s h",
        condition, end.within, table);
    add_entry_key(statement, 1);
    statement->add(
        " AND h.id OPERATOR(pg_catalog.%s) e.id AND h.transaction OPERATOR(pg_catalog.<>) "
        "e.transaction ORDER BY h.id %s LIMIT 1), %s) ORDER BY h.command %s, h.id %s LIMIT 1",
        end.beyond, end.order, end.nowhere, end.order, end.order);
}

// The row after the last entry up to the time. Only entries since the history is complete count:
// earlier ones may be from before it was disabled for a while.
static Answer last_entry(const Question& question, TimestampTz at) {
    Answer answer = {};
    Oid table = question.history->table;
    with_spi([&] {
        PlanShape shape = {table, PlanKind("history_as_of")};
        shape.by_index = true;
        TablePlan plan = plan_of(shape, [&](Statement* statement) {
            for (Oid type : {JSONBOID, TIMESTAMPTZOID, TIMESTAMPTZOID})
                (void)statement->parameter(type);
            write_end(statement, kLast, qualified_name(table),
                      psprintf("CASE WHEN h.operation OPERATOR(pg_catalog.=) ANY "
                               "('{delete,moved,truncate}') THEN NULL ELSE %s END",
                               whole_row_sql(table)),
                      "h.changed_at OPERATOR(pg_catalog.<=) $2 AND "
                      "h.changed_at OPERATOR(pg_catalog.>=) $3");
        });
        TimestampTz since = question.history->since;
        Parameters parameters(3);
        parameters.add(question.entry_key);
        parameters.add(TimestampTzGetDatum(at));
        parameters.add(TimestampTzGetDatum(at >= since ? since : DT_NOBEGIN));
        answer = answer_of(plan, parameters);
    });
    return answer;
}

// The row before the first entry after the time.
static Answer entry_after(const Question& question, TimestampTz at) {
    Answer answer = {};
    Oid table = question.history->table;
    with_spi([&] {
        PlanShape shape = {table, PlanKind("history_first")};
        shape.by_index = true;
        TablePlan plan = plan_of(shape, [&](Statement* statement) {
            for (Oid type : {JSONBOID, TEXTARRAYOID, TIMESTAMPTZOID})
                (void)statement->parameter(type);
            write_end(statement, kFirst, qualified_name(table),
                      psprintf("CASE WHEN h.operation OPERATOR(pg_catalog.=) 'insert' OR h.changed "
                               "OPERATOR(pg_catalog.&&) $2 THEN NULL ELSE (%s) "
                               "OPERATOR(pg_catalog.||) COALESCE(h.before, '{}') END",
                               whole_row_sql(table)),
                      "h.changed_at OPERATOR(pg_catalog.>) $3");
        });
        Parameters parameters(3);
        parameters.add(question.entry_key);
        parameters.add(column_names(question.info->columns, question.history->key_columns));
        parameters.add(TimestampTzGetDatum(at));
        answer = answer_of(plan, parameters);
    });
    return answer;
}

// Those that are younger than the history.
static int64 count_entries(const Question& question) {
    int64 count = 0;
    Oid table = question.history->table;
    with_spi([&] {
        PlanShape shape = {table, PlanKind("history_count")};
        shape.by_index = true;
        TablePlan plan = plan_of(shape, [&](Statement* statement) {
            statement->add("SELECT FROM %s h", qualified_name(table));
            add_entry_key(statement, statement->parameter(JSONBOID));
            statement->add(" AND h.changed_at OPERATOR(pg_catalog.>=) $%d",
                           statement->parameter(TIMESTAMPTZOID));
        });
        Parameters parameters(2);
        parameters.add(question.entry_key);
        parameters.add(TimestampTzGetDatum(question.history->since));
        count = static_cast<int64>(run_plan(plan, parameters, question.history->keep_versions));
    });
    return count;
}

// Whether every entry of the key from the time on is there to be seen.
static bool reaches_back(const Question& question, TimestampTz at) {
    const History* history = question.history;
    if (at < history->since || !history->same_key)
        return false;
    if (check_enable_rls(history->table, InvalidOid, true) == RLS_ENABLED)
        return false; // entries may be hidden
    if (!has_retention(history))
        return true;
    if (history->keep_for > 0 && at >= GetCurrentTimestamp() - history->keep_for)
        return true;
    return history->keep_versions > 0 && count_entries(question) < history->keep_versions;
}

static NullableDatum present_row(const Question& question) {
    const Bitmapset* left_out = question.history->left_out;
    Bitmapset* columns = nullptr;
    for (int column = 1; column <= question.info->columns->natts; column++)
        if (!TupleDescAttr(question.info->columns, column - 1)->attisdropped &&
            !bms_is_member(column, left_out))
            columns = bms_add_member(columns, column);
    StoredRow row = read_row(question.rel, question.info, question.key, columns);
    if (!row.found)
        return {0, true};
    return {stored_row_to_jsonb(row, JsonFor::kStorage), false};
}

HistoryRead open_history(Oid relid, LOCKMODE mode) {
    HistoryRead read = {};
    read.rel = open_table(relid, mode);
    const History* history = require_history(read.rel, table_info(read.rel));
    if (history->is_clone) {
        Oid root = history->root;
        close_table(read.rel);
        read.rel = open_table(root, mode);
    }
    read.info = table_info(read.rel);
    read.history = require_history(read.rel, read.info);
    require_distributable(read.rel, read.info->distribution, "enable_history");
    Relation entries = open_readable_entries(read.rel, read.history, AccessShareLock);
    require_select(entries);
    close_table(entries);
    return read;
}

Question read_question(const Arguments& arguments, LOCKMODE mode) {
    Question question = {open_history(arguments.relation(0), mode), {}, 0};
    question.key =
        key_of_entries(question, key_argument(arguments, 1, question.rel, question.info));
    question.entry_key = history_key(question.info, question.key);
    return question;
}

NullableDatum state_at(const Question& question, TimestampTz at) {
    Answer last = last_entry(question, at);
    if (last.found)
        return last.value;
    if (!reaches_back(question, at))
        return {0, true};
    Answer next = entry_after(question, at);
    if (next.found)
        return next.value;
    // In this order: a change that is committed in between has an entry then.
    NullableDatum present = present_row(question);
    next = entry_after(question, at);
    return next.found ? next.value : present;
}

} // namespace interlock::history

// rows_as_of: a whole table at a time, one statement for all rows.
//
// The statement finds the entry of each key that decides: the last one up to the time, otherwise
// the first one after it. A row of the table whose key has no entry has not changed since the
// history began. The answer of each row is that of row_as_of. The function raises an error where
// row_as_of returns null because the answer is not known: a row that is missing in a whole table
// would not be noticed.
//
// Isolation: entries and rows are of one snapshot.

#include "history/read.h"
#include "history/short_entry.h"
#include "server/error.h"
#include "server/scope.h"
#include "table/plan.h"
#include "table/row.h"

namespace interlock::history {

namespace {

struct RowsRead : HistoryRead {
    TimestampTz at;
};

// Takes the rows of the statement, one at a time, so that they are not in memory together.
struct RowReceiver : DestReceiver {
    const RowsRead* read;
    Tuplestorestate* rows;
    MemoryContext memory; // for one row
};

} // namespace

static Oid table_argument(const Arguments& arguments);
static RowsRead open_rows(Oid relid, TimestampTz at);
static void require_columns(Relation rel, TupleDesc expected);
static void check_reach(const RowsRead& read);
static void list_rows(const RowsRead& read, Tuplestorestate* rows);

extern "C" {
PG_FUNCTION_INFO_V1(rows_as_of);
PG_FUNCTION_INFO_V1(history_key_of);

// rows_as_of(table_type, at)
Datum rows_as_of(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Oid relid = table_argument(arguments);
    TimestampTz at = DatumGetTimestampTz(arguments.required(1, "at"));
    InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
    auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    RowsRead read = open_rows(relid, at);
    require_columns(read.rel, result->setDesc);
    check_reach(read);
    list_rows(read, result->setResult);
    close_table(read.rel);
    return 0;
}

// history_key_of(row): its key as its entries have it.
Datum history_key_of(PG_FUNCTION_ARGS) {
    HeapTupleHeader header = PG_GETARG_HEAPTUPLEHEADER(0);
    Relation rel = open_table(get_typ_typrelid(HeapTupleHeaderGetTypeId(header)), AccessShareLock);
    const TableInfo* info = table_info(rel);
    require_history(rel, info);
    HeapTupleData row = row_in(header);
    Datum key = history_key(info, values_of_row(info->columns, &row));
    close_table(rel);
    return key;
}
}

static Oid table_argument(const Arguments& arguments) {
    Oid type = arguments.type(0);
    Oid relid = OidIsValid(type) ? get_typ_typrelid(type) : InvalidOid;
    if (!OidIsValid(relid))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("argument \"table_type\" must be of the row type of a table"),
                        errhint("For example SELECT * FROM interlock.rows_as_of(NULL::orders, "
                                "'2026-01-01'), for a table named orders.")));
    return relid;
}

static RowsRead open_rows(Oid relid, TimestampTz at) {
    RowsRead read = {open_history(relid, AccessShareLock), at};
    if (RelationGetRelid(read.rel) != relid)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("table \"%s\" is a partition and recorded with its parent",
                               get_rel_name(relid)),
                        errhint("Read the parent: SELECT * FROM interlock.rows_as_of(NULL::%s, "
                                "...)",
                                qualified_name(read.rel))));
    return read;
}

static bool same_column(Form_pg_attribute left, Form_pg_attribute right) {
    return left->attisdropped == right->attisdropped && left->atttypid == right->atttypid &&
           left->attlen == right->attlen && left->attalign == right->attalign;
}

// The statement that calls the function reads the rows by the columns that the table had before it
// was locked here.
static void require_columns(Relation rel, TupleDesc expected) {
    TupleDesc columns = RelationGetDescr(rel);
    bool are_same = columns->natts == expected->natts;
    for (int i = 0; are_same && i < columns->natts; i++)
        are_same = same_column(TupleDescAttr(columns, i), TupleDescAttr(expected, i));
    if (!are_same)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("columns of table \"%s\" have changed during the call",
                               RelationGetRelationName(rel)),
                        errhint("Call the function again.")));
}

// --- What is not known ---------------------------------------------------------------------------

[[noreturn]] static void raise_unknown(const RowsRead& read, const char* key, const char* hint) {
    ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND),
                    errmsg("history of table \"%s\" does not say what its rows were at %s",
                           RelationGetRelationName(read.rel), timestamptz_to_str(read.at)),
                    errdetail_internal("%s", json_object({{"table", shown_name(read.rel)},
                                                          {"key", nullptr, key}})),
                    errhint("%s", hint)));
}

static bool is_within_keep_for(const RowsRead& read) {
    return read.history->keep_for > 0 && read.at >= GetCurrentTimestamp() - read.history->keep_for;
}

static void check_reach(const RowsRead& read) {
    const History* history = read.history;
    if (check_enable_rls(history->table, InvalidOid, true) == RLS_ENABLED)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("row security may hide entries of the history of table \"%s\"",
                        RelationGetRelationName(read.rel)),
                 errhint("Ask the owner of the table, or a role with BYPASSRLS, to call the "
                         "function. row_as_of() reads the rows whose entries you can see.")));
    if (read.at < history->since)
        raise_unknown(read, nullptr,
                      psprintf("The history is complete since %s, when it was enabled, or when its "
                               "retention or ignored columns and writers were changed. "
                               "row_as_of() reads rows that have earlier entries.",
                               timestamptz_to_str(history->since)));
    if (!history->same_key)
        raise_unknown(read, nullptr,
                      "The key of the table has changed since the history was enabled. "
                      "row_as_of() reads rows whose entries have the current key.");
    if (history->keep_for > 0 && history->keep_versions <= 0 && !is_within_keep_for(read))
        raise_unknown(read, nullptr,
                      "Older entries are not kept. keep_for of enable_history says how long.");
}

// --- The statement -------------------------------------------------------------------------------

// As entries are ordered by row_history, but with the nearest to the time first. A key whose
// entries are as many as are kept may have had more.
static void write_nearest(Statement* statement, const char* entries) {
    constexpr const char* kHash = "pg_catalog.jsonb_hash_extended(key, 0)";
    constexpr const char* kSign = "OPERATOR(pg_catalog.*) CASE WHEN past THEN -1 ELSE 1 END";
    statement->add(
        "WITH entry AS (SELECT h.id, h.key, h.transaction, h.command, h.changed_at "
        "OPERATOR(pg_catalog.<=) $1 AS past FROM %s h WHERE h.changed_at "
        "OPERATOR(pg_catalog.>=) $2), ",
        entries);
    statement->add(
        "follower AS (SELECT *, pg_catalog.count(*) OVER (PARTITION BY %s, key) AS entries, "
        "(pg_catalog.lag(transaction) OVER (PARTITION BY %s, key, past ORDER BY id) "
        "OPERATOR(pg_catalog.=) transaction) IS NOT TRUE AS leads FROM entry), ",
        kHash, kHash);
    statement->add(
        "turn AS (SELECT *, pg_catalog.count(*) FILTER (WHERE leads) OVER (PARTITION BY %s, key, "
        "past ORDER BY id) AS number FROM follower), ",
        kHash);
    statement->add(
        "nearest AS MATERIALIZED (SELECT DISTINCT ON (%s, key) id, key, past, entries FROM turn "
        "ORDER BY %s, key, past DESC, number %s, command %s, id %s) ",
        kHash, kHash, kSign, kSign, kSign);
}

// Each row of the result is a row as jsonb or as it is, or neither if there was none then. The key
// is given of a row that is not known.
static void write_rows(Statement* statement, Oid history, const char* table, bool only) {
    const char* entries = qualified_name(history);
    const char* row = whole_row_sql(history);
    write_nearest(statement, entries);
    statement->add(
        "SELECT CASE WHEN n.past THEN CASE WHEN h.operation OPERATOR(pg_catalog.=) ANY "
        "('{delete,moved,truncate}') THEN NULL ELSE %s END WHEN h.operation "
        "OPERATOR(pg_catalog.=) 'insert' OR h.changed OPERATOR(pg_catalog.&&) $4 THEN NULL ELSE "
        "(%s) OPERATOR(pg_catalog.||) COALESCE(h.before, '{}') END, NULL::%s, CASE WHEN NOT "
        "n.past AND n.entries OPERATOR(pg_catalog.>=) $3 THEN n.key END FROM nearest n JOIN %s h "
        "ON h.id OPERATOR(pg_catalog.=) n.id ",
        row, row, table, entries);
    statement->add(
        "UNION ALL SELECT NULL, (r.*)::%s, NULL FROM %s%s r WHERE NOT EXISTS (SELECT FROM nearest "
        "n WHERE n.key OPERATOR(pg_catalog.=) interlock_internal.history_key_of(r.*))",
        table, only ? "ONLY " : "", table);
}

static TablePlan rows_plan(const RowsRead& read) {
    Oid entries = read.history->table;
    return plan_of({entries, PlanKind("history_rows")}, [&](Statement* statement) {
        for (Oid type : {TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID, TEXTARRAYOID})
            (void)statement->parameter(type);
        write_rows(statement, entries, qualified_name(read.rel),
                   read.rel->rd_rel->relkind == RELKIND_RELATION);
    });
}

// From how many entries of a key on older ones may be gone that the answer needs.
static int64 kept_entries(const RowsRead& read) {
    return read.history->keep_versions > 0 && !is_within_keep_for(read)
               ? read.history->keep_versions
               : PG_INT64_MAX;
}

static Parameters rows_parameters(const RowsRead& read) {
    Parameters parameters(4);
    parameters.add(TimestampTzGetDatum(read.at));
    parameters.add(TimestampTzGetDatum(read.history->since));
    parameters.add(Int64GetDatum(kept_entries(read)));
    parameters.add(column_names(read.info->columns, read.history->key_columns));
    return parameters;
}

// --- The rows ------------------------------------------------------------------------------------

static HeapTuple row_of_entry(const RowsRead& read, Datum row_data) {
    return with_hint(
        [] { errhint("A column has had another type then. row_history() shows its values."); },
        [&] {
            HeapTuple row = nullptr;
            with_stored_money([&] { row = row_from_jsonb(read.info, DatumGetJsonbP(row_data)); });
            return row;
        });
}

static void put_row(const RowReceiver* receiver, const Datum* values, const bool* nulls) {
    if (!nulls[2]) {
        Jsonb* key = DatumGetJsonbP(values[2]);
        raise_unknown(*receiver->read,
                      JsonbToCString(nullptr, &key->root, static_cast<int>(VARSIZE(key))),
                      "Retention may have removed entries of this row. With keep_for, all rows are "
                      "known for that time.");
    }
    if (!nulls[0]) {
        tuplestore_puttuple(receiver->rows, row_of_entry(*receiver->read, values[0]));
    } else if (!nulls[1]) {
        HeapTupleData row = row_in(DatumGetHeapTupleHeader(values[1]));
        tuplestore_puttuple(receiver->rows, &row);
    }
}

static bool receive_row(TupleTableSlot* slot, DestReceiver* self) {
    auto* receiver = static_cast<RowReceiver*>(self);
    slot_getallattrs(slot);
    in_context(receiver->memory, [&] {
        put_row(receiver, slot->tts_values, slot->tts_isnull);
        return 0;
    });
    MemoryContextReset(receiver->memory);
    return true;
}

static void list_rows(const RowsRead& read, Tuplestorestate* rows) {
    RowReceiver receiver = {};
    receiver.receiveSlot = receive_row;
    receiver.rStartup = [](DestReceiver*, int, TupleDesc) {};
    receiver.rShutdown = [](DestReceiver*) {};
    receiver.rDestroy = [](DestReceiver*) {};
    receiver.mydest = DestNone;
    receiver.read = &read;
    receiver.rows = rows;
    with_spi([&] {
        receiver.memory =
            AllocSetContextCreate(CurrentMemoryContext, "row as of", ALLOCSET_DEFAULT_SIZES);
        run_plan_into(&receiver, rows_plan(read), rows_parameters(read));
    });
}

} // namespace interlock::history

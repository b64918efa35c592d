// Sequences after logical replication, which replicates rows and no sequences: those of history
// entries, starts of versions, tokens and audits are set above the values in their tables.
//
// Each sequence is locked against nextval before its table is read, and is never set back. Tables
// are read as their owner, restricted, and past their policies.

#include "history/history.h"
#include "history/partition.h"
#include "history/table.h"
#include "server/concept.h"
#include "server/result_row.h"
#include "server/sequence.h"
#include "server/subtransaction.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/restricted.h"
#include "table/subscription.h"
#include "version/start.h"
#include "version/version.h"

namespace interlock::history {

namespace {

// The value that a sequence must have reached: the result of the query for one number, up to
// `most`.
struct Resync {
    Oid sequence;
    const char* query;
    int64 most;
};

} // namespace

static void resync_own_tables(ReturnSetInfo* output);
static void resync_users_tables(ReturnSetInfo* output);

extern "C" {
PG_FUNCTION_INFO_V1(resync_sequences);

// resync_sequences() -> setof (sequence, before, after)
Datum resync_sequences(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    resync_own_tables(output);
    resync_users_tables(output);
    return 0;
}
}

static bool is_own_sequence(Oid sequence) {
    return get_rel_relkind(sequence) == RELKIND_SEQUENCE && owns_relation(sequence, GetUserId());
}

static int64 needed_value(const Resync& resync) {
    int64 value = 0;
    with_spi([&] {
        run_command(resync.query);
        bool is_null;
        Datum largest = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
        value = is_null ? 0 : DatumGetInt64(largest);
    });
    return Min(value, resync.most);
}

static void raise_sequence(const Resync& resync, ReturnSetInfo* output) {
    LockRelationOid(resync.sequence, ShareRowExclusiveLock);
    if (!is_own_sequence(resync.sequence)) // dropped or given away meanwhile
        return;
    int64 before = value_of_sequence(resync.sequence);
    int64 after = before;
    as_untrusted(owner_of_table(resync.sequence), SECURITY_NOFORCE_RLS, [&] {
        after = Max(before, needed_value(resync));
        if (after > before)
            DirectFunctionCall2(setval_oid, ObjectIdGetDatum(resync.sequence),
                                Int64GetDatum(after));
    });
    if (after == before)
        return;
    Datum values[3] = {ObjectIdGetDatum(resync.sequence), Int64GetDatum(before),
                       Int64GetDatum(after)};
    bool nulls[3] = {};
    add_result_row(output, values, nulls);
}

static void warn(const ErrorData* error, const char* what, Oid relid) {
    const char* name = get_rel_name(relid);
    if (name != nullptr)
        ereport(WARNING, (errcode(error->sqlerrcode),
                          errmsg("%s \"%s\" was not set: %s", what, name, error->message)));
}

// A failure of one does not prevent the others from being set, also where its owner holds a lock
// until lock_timeout.
static void try_to_raise(const Resync& resync, ReturnSetInfo* output) {
    if (!OidIsValid(resync.sequence) || !is_own_sequence(resync.sequence))
        return;
    ErrorData* error = attempt([&] { raise_sequence(resync, output); });
    if (error != nullptr)
        warn(error, "sequence", resync.sequence);
}

static char* query_of(const char* column, const char* rows) {
    return psprintf("SELECT pg_catalog.max(%s)::pg_catalog.int8 FROM %s", quote_identifier(column),
                    rows);
}

// Of the rows for which the condition holds.
static void resync_own(Oid schema, const char* sequence, const char* table, const char* column,
                       const char* condition, ReturnSetInfo* output) {
    Oid relid = get_relname_relid(table, schema);
    try_to_raise(
        {get_relname_relid(sequence, schema),
         query_of(column, psprintf("%s%s", qualified_name(relid), condition)), PG_INT64_MAX},
        output);
}

static void forget_rows() {
    for (const Concept* each : concepts())
        if (each->forget_rows != nullptr)
            each->forget_rows();
}

static void resync_own_tables(ReturnSetInfo* output) {
    constexpr const char* kToken = "idempotency_token";
    constexpr const char* kTables[][3] = {
        {kToken, "idempotency", "token"},
        {"row_lock_audit_id_seq", "row_lock_audit", "id"},
        {"lease_audit_id_seq", "lease_audit", "id"},
        {"idempotency_audit_id_seq", "idempotency_audit", "id"},
        {"configuration_audit_id_seq", "configuration_audit", "id"},
        {"write_log_id_seq", "write_log", "id"}};
    for (auto& [sequence, table, column] : kTables)
        resync_own(own_schema(), sequence, table, column, "", output);
    // The sweeper begins at any counter up to the last: those apart would leave it no others.
    constexpr const char* kCounters[][3] = {{"escrow_counter_id", "escrow_counter", "id"},
                                            {"escrow_part_number", "escrow_part", "number"}};
    for (auto& [sequence, table, column] : kCounters)
        resync_own(
            internal_schema(), sequence, table, column,
            psprintf(" WHERE %s OPERATOR(pg_catalog.<) " INT64_FORMAT, column, kFirstNumberApart),
            output);
    if (is_own_sequence(get_relname_relid(kToken, own_schema())))
        forget_rows();
}

// Any role can create a trigger of ours on a table of its own: only a sequence and table that look
// as the extension created them are changed, and only if both have one owner.
static Resync for_history(Oid table, Oid owner) {
    Resync resync = {InvalidOid, nullptr, PG_INT64_MAX};
    Relation rel = try_relation_open(table, AccessShareLock);
    if (rel == nullptr)
        return resync;
    if (can_have_entries(rel) && rel->rd_rel->relowner == owner && has_history_columns(rel)) {
        resync.sequence = sequence_of_identity(rel, kEntryId + 1);
        resync.query = query_of(history_columns[kEntryId].name, rows_of(rel));
    }
    relation_close(rel, NoLock);
    return resync;
}

// A row that was deleted had at most the version that its history has.
static Resync for_start(Relation rel, const TableInfo* info, bool has_history) {
    const version::Versioning* versioning = version::versioning_of(info);
    const char* query = query_of(NameStr(versioning->name), rows_of(rel));
    if (has_history)
        query = psprintf(
            "SELECT GREATEST((%s), (%s))", query,
            query_of(history_columns[kEntryVersion].name, qualified_name(history_of(info)->table)));
    return {version::find_start(versioning), query, version::highest_start(versioning->kind)};
}

namespace {

// The sequences of a table.
struct Resyncs {
    Resync entries;
    Resync start;
};

} // namespace

static Resyncs find_resyncs(Oid relid) {
    Resyncs found = {};
    Relation rel = try_relation_open(relid, AccessShareLock);
    if (rel == nullptr)
        return found;
    const TableInfo* info = table_info(rel);
    if (!RELATION_IS_OTHER_TEMP(rel) && history_of(info) != nullptr && !history_of(info)->is_clone)
        found.entries = for_history(history_of(info)->table, rel->rd_rel->relowner);
    const version::Versioning* versioning = version::versioning_of(info);
    if (!RELATION_IS_OTHER_TEMP(rel) && versioning != nullptr && !versioning->is_clone &&
        versioning->column != InvalidAttrNumber && version::is_counter(versioning->kind))
        found.start = for_start(rel, info, OidIsValid(found.entries.sequence));
    close_table(rel);
    return found;
}

static void resync_table(Oid relid, ReturnSetInfo* output) {
    Resyncs found = {};
    ErrorData* error = attempt([&] { found = find_resyncs(relid); });
    if (error != nullptr) {
        warn(error, "a sequence of table", relid);
        return;
    }
    try_to_raise(found.entries, output);
    try_to_raise(found.start, output);
}

static List* tables_with_sequences() {
    return query_oids(
        psprintf("SELECT DISTINCT tgrelid FROM pg_catalog.pg_trigger WHERE tgparentid "
                 "OPERATOR(pg_catalog.=) 0 AND tgfoid OPERATOR(pg_catalog.=) ANY "
                 "('{%u,%u}'::pg_catalog.oid[]) ORDER BY 1",
                 own_trigger_function("history_trigger"), own_trigger_function("version_trigger")));
}

static void resync_users_tables(ReturnSetInfo* output) {
    ListCell* cell;
    foreach (cell, tables_with_sequences()) {
        Oid relid = lfirst_oid(cell);
        if (OidIsValid(owner_of_table(relid)) && owns_relation(relid, GetUserId()))
            resync_table(relid, output);
    }
}

} // namespace interlock::history

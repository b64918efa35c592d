// Trimming: entries past retention are deleted in batches, in the order of their ids.
//
// A pass reads the entries that have aged and stores its position. For each key it finds it deletes
// the entries that are neither young nor among the newest. Other transactions can only add newer
// entries meanwhile, so at least the configured number remains. The position stays behind every
// entry that a running transaction could still write.
//
// A short entry that stays, and builds on one that is deleted, becomes whole in the same statement.
// It must be the same: another entry can be committed between two statements.

#include "history/partition.h"
#include "history/partition_retention.h"
#include "history/short_entry.h"
#include "server/arguments.h"
#include "server/relation_lock.h"
#include "server/result_row.h"
#include "server/subtransaction.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/restricted.h"

namespace interlock::history {

// An entry with a lower id may still become visible after an entry that is younger than this.
constexpr TimestampTz kSettled = USECS_PER_MINUTE;

static void trim_one(Oid relid, int32 max_rows, ReturnSetInfo* output);
static void try_to_trim(Oid relid, int32 max_rows, ReturnSetInfo* output);

extern "C" {
PG_FUNCTION_INFO_V1(trim_history);

// trim_history(rel, max_rows)
Datum trim_history(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    Arguments arguments(fcinfo);
    int32 max_rows = arguments.is_null(1)
                         ? PG_INT32_MAX
                         : above_zero(DatumGetInt32(arguments.value(1)), "max_rows");
    if (!arguments.is_null(0)) {
        trim_one(arguments.relation(0), max_rows, output);
        return 0;
    }
    ListCell* cell;
    foreach (cell, trimmed_tables())
        if (owns_relation(lfirst_oid(cell), GetUserId()))
            try_to_trim(lfirst_oid(cell), max_rows, output);
    return 0;
}
}

static void trim_one(Oid relid, int32 max_rows, ReturnSetInfo* output) {
    constexpr int kBatch = 1000;
    close_table(open_own_table(relid, AccessShareLock));
    PartitionWork partitions = maintain_partitions(relid);
    TrimResult result = {};
    int64 trimmed = 0;
    do {
        CHECK_FOR_INTERRUPTS();
        result = trim_batch(relid, result, static_cast<int32>(Min(max_rows - trimmed, kBatch)));
        trimmed += result.trimmed;
    } while (result.more && trimmed < max_rows);
    Datum values[3] = {ObjectIdGetDatum(relid), Int64GetDatum(trimmed),
                       Int32GetDatum(partitions.dropped)};
    bool nulls[3] = {};
    add_result_row(output, values, nulls);
}

// One of several: a failure does not prevent the others from being trimmed.
static void try_to_trim(Oid relid, int32 max_rows, ReturnSetInfo* output) {
    ErrorData* error = attempt([&] {
        if (!lock_without_waiting(relid, AccessShareLock))
            ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
                            errmsg("another transaction has locked it")));
        trim_one(relid, max_rows, output);
    });
    if (error != nullptr)
        ereport(WARNING,
                (errcode(error->sqlerrcode), errmsg("history of table \"%s\" was not trimmed: %s",
                                                    get_rel_name(relid), error->message)));
}

static Datum column_of(uint64 row, int n, bool* is_null) {
    return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, n, is_null);
}

static int64 integer_column(uint64 row, int n) {
    bool is_null;
    Datum value = column_of(row, n, &is_null);
    return is_null ? 0 : DatumGetInt64(value);
}

// --- Where the pass is ---------------------------------------------------------------------------

static int64 read_position(Oid history) {
    int64 position = 0;
    Oid table = internal_table("history_position");
    as_owner_of(table, [&] {
        with_spi([&] {
            TablePlan plan =
                plan_of({table, PlanKind("history_position")}, [](Statement* statement) {
                    statement->add(
                        "SELECT reached FROM interlock_internal.history_position "
                        "WHERE history OPERATOR(pg_catalog.=) $%d",
                        statement->parameter(OIDOID));
                });
            Parameters parameters(1);
            parameters.add(ObjectIdGetDatum(history));
            if (run_plan(plan, parameters) > 0)
                position = integer_column(0, 1);
        });
    });
    return position;
}

// Also deletes the positions of dropped tables; not those that a transaction of another role is
// deleting, as it may stay open.
static void write_position(Oid history, int64 position) {
    Oid table = internal_table("history_position");
    as_owner_of(table, [&] {
        with_spi([&] {
            TablePlan plan = plan_of({table, PlanKind("history_reached")}, [](Statement*
                                                                                  statement) {
                int oid = statement->parameter(OIDOID);
                statement->add(
                    "WITH gone AS (DELETE FROM interlock_internal.history_position WHERE history "
                    "OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT p.history FROM "
                    "interlock_internal.history_position p WHERE NOT EXISTS (SELECT FROM "
                    "pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) p.history) FOR "
                    "UPDATE "
                    "SKIP LOCKED))) INSERT INTO interlock_internal.history_position VALUES ($%d, "
                    "$%d) "
                    "ON CONFLICT (history) DO UPDATE SET reached = excluded.reached",
                    oid, statement->parameter(INT8OID));
            });
            Parameters parameters(2);
            parameters.add(ObjectIdGetDatum(history));
            parameters.add(Int64GetDatum(position));
            run_plan(plan, parameters);
        });
    });
}

// Whether the owner has emptied the table and its numbers have begun again, behind the position.
static bool has_restarted(const History* history, int64 position) {
    TablePlan plan = plan_of({history->table, PlanKind("history_last")}, [&](Statement* statement) {
        statement->add("SELECT pg_catalog.max(id) FROM %s", qualified_name(history->table));
    });
    run_plan(plan, Parameters(1));
    require_result({INT8OID});
    bool is_null;
    Datum last = column_of(0, 1, &is_null);
    return !is_null && DatumGetInt64(last) < position;
}

// Every transaction that runs in this database, and has written, began later or then. When a
// prepared transaction began is not known. Not later than now.
static TimestampTz oldest_running() {
    TimestampTz running = GetCurrentTimestamp();
    pgstat_clear_snapshot(); // the transaction may have looked earlier
    Oid table = internal_table("history_position");
    as_owner_of(table, [&] { // whose privileges show all sessions
        with_spi([&] {
            TablePlan plan =
                plan_of({InvalidOid, PlanKind("history_running")}, [](Statement* statement) {
                    statement->add(
                        "SELECT LEAST((SELECT pg_catalog.min(COALESCE(xact_start, "
                        "'-infinity')) FROM "
                        "pg_catalog.pg_stat_activity WHERE backend_xid IS NOT NULL AND datname "
                        "OPERATOR(pg_catalog.=) pg_catalog.current_database() AND pid "
                        "OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()), (SELECT "
                        "'-infinity'::pg_catalog.timestamptz FROM pg_catalog.pg_prepared_xacts "
                        "WHERE database OPERATOR(pg_catalog.=) pg_catalog.current_database() "
                        "LIMIT 1))");
                });
            run_plan(plan, Parameters(1));
            bool is_null;
            Datum oldest = column_of(0, 1, &is_null);
            if (!is_null)
                running = Min(running, DatumGetTimestampTz(oldest));
        });
    });
    return running;
}

// --- One batch -----------------------------------------------------------------------------------

namespace {

struct Batch {
    int64 from;       // the entries after it
    int64 to;         // up to this one
    int64 settled;    // and none up to here can still come
    TimestampTz aged; // entries up to this time have aged
    bool unsettled;   // a later one can
    bool full;
    TimestampTz next; // when the next entry ages, DT_NOEND if there is none
};

} // namespace

// Where the newest entry of a key can be deleted, no running transaction may have built on it
// before it aged. What ends after the snapshot of the whole transaction is not visible.
static TimestampTz aged_before(const History* history, TimestampTz running) {
    if (history->whole_every == 1 || history->keep_versions > 0)
        return GetCurrentTimestamp() - history->keep_for;
    bool is_unknown = IsolationUsesXactSnapshot() || TIMESTAMP_IS_NOBEGIN(running);
    return is_unknown ? DT_NOBEGIN : running - history->keep_for;
}

// As many entries as have aged, in their order.
static Batch find_batch(const History* history, int64 from, int32 most, TimestampTz running) {
    TimestampTz aged = aged_before(history, running);
    TimestampTz settled = Min(running, GetCurrentTimestamp() - kSettled);
    Batch batch = {from, from, from, aged, false, false, DT_NOEND};
    TablePlan plan =
        plan_of({history->table, PlanKind("history_batch")}, [&](Statement* statement) {
            statement->add(
                "SELECT id, changed_at FROM %s WHERE id OPERATOR(pg_catalog.>) $%d ORDER BY id",
                qualified_name(history->table), statement->parameter(INT8OID));
            statement->add(" LIMIT $%d", statement->parameter(INT4OID));
        });
    Parameters parameters(2);
    parameters.add(Int64GetDatum(from));
    parameters.add(Int32GetDatum(most));
    uint64 count = run_plan(plan, parameters);
    require_result({INT8OID, TIMESTAMPTZOID});
    for (uint64 i = 0; i < count; i++) {
        TimestampTz changed_at = integer_column(i, 2);
        if (changed_at > aged) {
            batch.next = changed_at;
            return batch;
        }
        batch.to = integer_column(i, 1);
        if (changed_at >= settled && !batch.unsettled) {
            batch.unsettled = true;
            batch.next = changed_at;
        }
        if (!batch.unsettled)
            batch.settled = batch.to;
    }
    batch.full = count == static_cast<uint64>(most);
    return batch;
}

// Adds the condition on surplus entries h of the key. They are up to the end of the batch: however
// many entries a key has, all batches cost the same. An entry with a higher id that precedes
// another of its transaction does not count as newer.
static void add_surplus(Statement* statement, const History* history) {
    add_entry_key(statement, 1);
    statement->add(
        " AND h.changed_at OPERATOR(pg_catalog.<=) $2 AND h.id OPERATOR(pg_catalog.<=) $3");
    if (history->keep_versions > 0)
        statement->add(
            " AND h.id OPERATOR(pg_catalog.<) (SELECT pg_catalog.min(k.id) FROM kept k) AND "
            "NOT EXISTS (SELECT FROM kept k WHERE k.transaction OPERATOR(pg_catalog.=) "
            "h.transaction AND k.command OPERATOR(pg_catalog.<) h.command)");
}

// Of the entries that stay, at most the next one after the surplus builds on it. It keeps its
// distance, because entries that build on it are read by older snapshots too.
static void add_completion(Statement* statement, const History* history, const char* table) {
    statement->add(", surplus AS MATERIALIZED (SELECT h.id FROM %s h", table);
    add_surplus(statement, history);
    statement->add("), completed AS (UPDATE %s h SET row_data = %s, builds_on = NULL", table,
                   whole_row_sql(history->table));
    add_entry_key(statement, 1);
    statement->add(
        " AND h.builds_on IN (SELECT s.id FROM surplus s) AND h.id NOT IN (SELECT s.id FROM "
        "surplus s) AND h.id OPERATOR(pg_catalog.<=) COALESCE((SELECT h.id FROM %s h",
        table);
    add_entry_key(statement, 1);
    statement->add(
        " AND h.id OPERATOR(pg_catalog.>) (SELECT pg_catalog.max(s.id) FROM surplus s) "
        "ORDER BY h.id LIMIT 1), (SELECT pg_catalog.max(s.id) FROM surplus s)))");
}

// An UPDATE needs a privilege, also when it finds nothing: without short entries there is none.
static bool may_be_built_on(const History* history, Datum key, int64 to) {
    PlanShape shape = {history->table, PlanKind("history_followed")};
    shape.by_index = true;
    TablePlan plan = plan_of(shape, [&](Statement* statement) {
        for (Oid type : {JSONBOID, INT8OID})
            (void)statement->parameter(type);
        statement->add("SELECT FROM %s h", qualified_name(history->table));
        add_entry_key(statement, 1);
        statement->add(" AND h.id OPERATOR(pg_catalog.<=) $2 AND h.distance IS NOT NULL");
    });
    Parameters parameters(2);
    parameters.add(key);
    parameters.add(Int64GetDatum(to));
    return run_plan(plan, parameters, 1) > 0;
}

static int64 delete_surplus(const History* history, Datum key, const Batch& batch) {
    bool has_followers = may_be_built_on(history, key, batch.to);
    PlanShape shape = {history->table, PlanKind("history_trim")};
    shape.subject = (history->keep_versions > 0 ? 1 : 0) + (has_followers ? 2 : 0);
    shape.by_index = true;
    TablePlan plan = plan_of(shape, [&](Statement* statement) {
        const char* table = qualified_name(history->table);
        for (Oid type : {JSONBOID, TIMESTAMPTZOID, INT8OID, INT8OID})
            (void)statement->parameter(type);
        statement->add("WITH kept AS MATERIALIZED (SELECT h.id, h.transaction, h.command FROM %s h",
                       table);
        add_entry_key(statement, 1);
        statement->add(" ORDER BY h.id DESC LIMIT $4)");
        if (has_followers)
            add_completion(statement, history, table);
        statement->add(" DELETE FROM %s h", table);
        add_surplus(statement, history);
    });
    Parameters parameters(4);
    parameters.add(key);
    parameters.add(TimestampTzGetDatum(batch.aged));
    parameters.add(Int64GetDatum(batch.to));
    parameters.add(Int64GetDatum(history->keep_versions));
    return static_cast<int64>(run_plan(plan, parameters));
}

// The keys of the batch, each once. The owner can allow nulls, and write entries without a key:
// those stay.
static int64 trim_keys(const History* history, const Batch& batch) {
    TablePlan plan = plan_of({history->table, PlanKind("history_keys")}, [&](Statement* statement) {
        int from = statement->parameter(INT8OID);
        statement->add(
            "SELECT DISTINCT key FROM %s WHERE id OPERATOR(pg_catalog.>) $%d AND id "
            "OPERATOR(pg_catalog.<=) $%d",
            qualified_name(history->table), from, statement->parameter(INT8OID));
    });
    Parameters parameters(2);
    parameters.add(Int64GetDatum(batch.from));
    parameters.add(Int64GetDatum(batch.to));
    uint64 count = run_plan(plan, parameters);
    require_result({JSONBOID});
    SPITupleTable* keys = SPI_tuptable;
    int64 trimmed = 0;
    for (uint64 i = 0; i < count; i++) {
        bool is_null;
        Datum key = SPI_getbinval(keys->vals[i], keys->tupdesc, 1, &is_null);
        if (!is_null)
            trimmed += delete_surplus(history, key, batch);
    }
    return trimmed;
}

TimestampTz trim_time(const History* history, TimestampTz changed_at) {
    TimestampTz wait = Max(history->keep_for, kSettled) + kHistorySweepGap;
    return Min(changed_at, END_TIMESTAMP - wait) + wait; // the owner may have written any time
}

void restart_trimming(Oid history) {
    write_position(history, 0);
    Oid partition = get_default_partition_oid(history);
    if (OidIsValid(partition))
        write_position(partition, 0);
}

List* trimmed_tables() {
    return query_oids(psprintf(
        "SELECT t.tgrelid FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid "
        "OPERATOR(pg_catalog.=) t.tgrelid JOIN pg_catalog.pg_class h ON h.oid "
        "OPERATOR(pg_catalog.=) t.tgconstrrelid AND h.relowner OPERATOR(pg_catalog.=) "
        "c.relowner WHERE t.tgfoid OPERATOR(pg_catalog.=) %u AND t.tgparentid "
        "OPERATOR(pg_catalog.=) 0 AND NOT EXISTS (SELECT FROM pg_catalog.pg_class o WHERE o.oid "
        // Temporary tables of other sessions cannot be read.
        "OPERATOR(pg_catalog.=) ANY (ARRAY[c.oid, h.oid]) AND o.relpersistence "
        "OPERATOR(pg_catalog.=) 't' AND o.relnamespace OPERATOR(pg_catalog.<>) "
        "pg_catalog.pg_my_temp_schema()) AND CASE WHEN t.tgnargs OPERATOR(pg_catalog.>) 2 THEN "
        // Its first or its second argument is not empty: of all, which may be long, the first
        // bytes.
        "pg_catalog.encode(pg_catalog.substr(t.tgargs, 1, 2), 'hex') OPERATOR(pg_catalog.<>) "
        "'0000' END ORDER BY 1",
        own_trigger_function("history_trigger")));
}

// The table is locked, together with the history table.
static Relation open_to_trim(Relation rel, const History* history, Oid table) {
    constexpr int16 kEvents = TRIGGER_TYPE_DELETE | TRIGGER_TYPE_UPDATE; // to become whole
    Relation entries = open_readable_entries(rel, history, RowExclusiveLock);
    if (table == history->table) {
        require_trusted_partitions(entries, kEvents);
        refuse_untrusted_triggers(entries, TRIGGER_TYPE_UPDATE);
        return entries;
    }
    Relation partition = table_open(table, NoLock);
    require_trusted_partition(entries, partition, kEvents);
    table_close(entries, NoLock);
    return partition;
}

// A batch of `history->table` or of one of its partitions, which is `entries->table`.
static TrimResult trim(Relation rel, const History* history, const History* entries,
                       const TrimResult& before, int32 max_rows) {
    TrimResult result = {0, false, before.reached, before.unsettled, DT_NOEND};
    int64 position = read_position(entries->table);
    TimestampTz running = oldest_running();
    Batch batch = {};
    bool restarted = false;
    deleting_as_owner(open_to_trim(rel, history, entries->table), [&] {
        with_spi([&] {
            batch = find_batch(entries, Max(before.reached, position), max_rows, running);
            result.trimmed = trim_keys(entries, batch);
            restarted = batch.to == position && has_restarted(entries, position);
        });
    });
    bool advances = batch.settled > position && !before.unsettled;
    if (advances || restarted)
        write_position(entries->table, restarted ? 0 : batch.settled);
    result.more = batch.full || restarted;
    result.reached = restarted ? 0 : batch.to;
    result.unsettled = !restarted && (before.unsettled || batch.unsettled);
    if (batch.next != DT_NOEND || result.unsettled)
        result.next = Max(batch.next == DT_NOEND ? 0 : trim_time(history, batch.next),
                          GetCurrentTimestamp() + kHistorySweepGap);
    return result;
}

// False: another session has locked it.
static bool lock_to_trim(const History* history, Oid* table) {
    if (!lock_without_waiting(history->table, RowExclusiveLock))
        return false;
    *table = table_to_trim(history); // which cannot be detached now
    return *table == history->table || !OidIsValid(*table) ||
           lock_without_waiting(*table, RowExclusiveLock);
}

TrimResult trim_batch(Oid relid, const TrimResult& before, int32 max_rows) {
    TrimResult result = {0, false, before.reached, before.unsettled, DT_NOEND};
    if (!lock_without_waiting(relid, AccessShareLock)) {
        result.next = GetCurrentTimestamp() + kHistorySweepGap;
        return result;
    }
    Relation rel = try_relation_open(relid, NoLock);
    if (rel == nullptr)
        return result;
    const History* history = history_of(table_info(rel));
    // A role with TRIGGER on a history table can create a trigger FROM it on a table of its own.
    if (history == nullptr || !has_retention(history) || !has_own_entries(rel, history)) {
        relation_close(rel, NoLock);
        return result;
    }
    History entries = *history;
    if (!lock_to_trim(history, &entries.table))
        result.next = GetCurrentTimestamp() + kHistorySweepGap;
    else if (OidIsValid(entries.table))
        result = trim(rel, history, &entries, before, max_rows);
    relation_close(rel, NoLock);
    return result;
}

} // namespace interlock::history

// A worker of the sweeper: connects to one database, releases what has expired there, says when to
// come again, and ends. It stays for about a second at most, so that it never holds up DROP
// DATABASE or CREATE DATABASE ... TEMPLATE, which wait five. The limits count from when it has
// found its tables and grow on a slow server (Run::pace), so that every life gets at least one
// table further.

#include "history/history.h"
#include "idempotency/sweep.h"
#include "marker/marker.h"
#include "marker/sweep.h"
#include "ownership/write_log.h"
#include "server/error.h"
#include "server/scope.h"
#include "sweeper/state.h"
#include "sweeper/sweeper.h"

using namespace interlock;

namespace {

constexpr TimestampTz kLongestRun = USECS_PER_SEC;
constexpr int kLongestBatch = 1000; // milliseconds
constexpr int kLongestLife = 3000;  // milliseconds, then even a trigger that catches a cancel ends
constexpr TimestampTz kRetryLocked = USECS_PER_SEC;
constexpr TimestampTz kRetryFailed = 10 * USECS_PER_SEC;

// What a run finds out.
struct Run {
    TimestampTz deadline; // the one it is for
    TimestampTz start;
    int pace; // what the limits of a statement and of the life are multiplied by
    TimestampTz next_deadline;
    bool has_extension;
    int64 released;
    int64 failed;
    char last_error[kErrorBytes];
    Oid resume_table; // where the run before had to stop, and what it had tried
    SweepPosition resume_from;
    bool row_by_row;
    Oid unfinished_table; // where this one had to
    SweepPosition reached;
};

void set_up_session();
Run begin_run();
void sweep_database(Run* run);
void end_run(const Run& run);

} // namespace

extern "C" {

PGDLLEXPORT void sweeper_worker_main(Datum argument);

void sweeper_worker_main(Datum argument) {
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    pqsignal(SIGTERM, die);
    BackgroundWorkerUnblockSignals();
    BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(argument), InvalidOid, 0);
    if (RecoveryInProgress() || IsBinaryUpgrade)
        return;
    set_up_session();
    Run run = begin_run();
    sweep_database(&run);
    end_run(run);
    pgstat_report_stat(true);
}
}

namespace {

void set_up_session() {
    // Whatever the database or the server sets for its users must not stop or bend a release. A
    // release that a crash undoes is done again: no need to wait for the disk.
    constexpr const char* settings[][2] = {{"search_path", "pg_catalog, pg_temp"},
                                           {"statement_timeout", "0"},
                                           {"lock_timeout", "0"},
                                           {"transaction_timeout", "0"}, // from 17 on
                                           {"idle_in_transaction_session_timeout", "0"},
                                           {"default_transaction_isolation", "read committed"},
                                           {"default_transaction_read_only", "off"},
                                           {"default_transaction_deferrable", "off"},
                                           {"synchronous_commit", "off"}};
    for (auto& setting : settings)
        if (GetConfigOption(setting[0], true, false) != nullptr)
            SetConfigOption(setting[0], setting[1], PGC_SUSET, PGC_S_OVERRIDE);
    pgstat_report_appname("pg_interlock sweeper");
}

// How long a worker needs to find its tables, which runs no code of users, says how slow the server
// is: there a trigger that does not hang takes long too.
int pace_of_server() {
    constexpr TimestampTz kUsual = USECS_PER_SEC / 5;
    constexpr TimestampTz kSlowest = 10;
    TimestampTz taken = GetCurrentTimestamp() - MyStartTimestamp;
    return static_cast<int>(Max(Min(taken / kUsual, kSlowest), 1));
}

volatile sig_atomic_t life_has_ended = false;
Oid attempted_table = InvalidOid;

void end_life() {
    life_has_ended = true;
    ProcDiePending = true;
    InterruptPending = true;
    SetLatch(MyLatch);
}

// The server's own message blames an administrator.
void explain_end(int, Datum life) {
    if (life_has_ended)
        ereport(LOG, (errmsg("pg_interlock: a sweeper worker ended itself after %d ms",
                             DatumGetInt32(life)),
                      errdetail("The last table it tried in database %u is %u.", MyDatabaseId,
                                attempted_table),
                      errhint("A trigger of the table may catch the cancel of its statement.")));
}

void limit_life(int life) {
    before_shmem_exit(explain_end, Int32GetDatum(life));
    enable_timeout_after(RegisterTimeout(USER_TIMEOUT, end_life), life);
}

// Where the next worker goes on if this one does not come to its end.
void note_attempt(Oid table, const SweepPosition& position, bool is_batch) {
    attempted_table = table;
    with_entry(MyDatabaseId, [&](DatabaseEntry* entry) {
        entry->unfinished_table = table;
        entry->reached = position;
        entry->row_by_row = is_batch;
    });
}

// The deadline is taken away before the rows are looked at: one that is reported from now on is
// kept.
Run begin_run() {
    Run run = {};
    run.start = GetCurrentTimestamp();
    run.has_extension = true;
    run.next_deadline = DT_NOEND;
    with_entry(MyDatabaseId, [&](DatabaseEntry* entry) {
        run.deadline = entry->next_deadline;
        run.resume_table = entry->unfinished_table;
        run.resume_from = entry->reached;
        run.row_by_row = entry->row_by_row;
        entry->next_deadline = DT_NOEND;
    });
    return run;
}

void end_run(const Run& run) {
    with_entry(MyDatabaseId, [&](DatabaseEntry* entry) {
        entry->running = false;
        entry->killed_in_a_row = 0;
        entry->has_extension = run.has_extension;
        lower_deadline(entry, run.next_deadline);
        entry->unfinished_table = run.unfinished_table;
        entry->reached = run.reached;
        entry->row_by_row = false;
        if (!run.has_extension)
            return;
        entry->runs++;
        entry->released += run.released;
        entry->failed += run.failed;
        entry->last_run = run.start;
        if (!TIMESTAMP_NOT_FINITE(run.deadline) && run.deadline > 0) {
            entry->lag = Max(run.start - run.deadline, 0);
            entry->max_lag = Max(entry->max_lag, entry->lag);
        }
        strlcpy(entry->last_error, run.last_error, kErrorBytes);
        entry->error_encoding = GetDatabaseEncoding();
    });
}

// Runs body() in a transaction of its own; an error is reported to the log and returned in
// `message`.
template <typename Body>
pg_noinline bool in_transaction(char* message, Body&& body) {
    static_assert(kIsPlainBody<Body>);
    volatile bool well = true;
    MemoryContext context = CurrentMemoryContext;
    PG_TRY();
    {
        SetCurrentStatementStartTimestamp();
        StartTransactionCommand();
        PushActiveSnapshot(GetTransactionSnapshot());
        body();
        PopActiveSnapshot();
        CommitTransactionCommand();
    }
    PG_CATCH();
    {
        // As PostgresMain() and the autovacuum worker: nothing may interrupt the clean up, and a
        // cancel that came for what has failed must not hit what comes next.
        HOLD_INTERRUPTS();
        disable_timeout(STATEMENT_TIMEOUT, false);
        QueryCancelPending = false;
        well = false;
        MemoryContextSwitchTo(context);
        ErrorData* error = CopyErrorData();
        EmitErrorReport();
        FlushErrorState();
        copy_message(message, kErrorBytes, error->message);
        FreeErrorData(error);
        AbortCurrentTransaction();
        RESUME_INTERRUPTS();
    }
    PG_END_TRY();
    MemoryContextSwitchTo(context);
    return well;
}

struct Tables {
    Oid* oids;
    int count;
    bool ready; // the database is to be swept
};

Tables copy_tables(MemoryContext context, List* list) {
    Tables tables = {};
    tables.oids =
        static_cast<Oid*>(MemoryContextAlloc(context, sizeof(Oid) * (list_length(list) + 1)));
    ListCell* cell;
    foreach (cell, list)
        tables.oids[tables.count++] = lfirst_oid(cell);
    return tables;
}

// A database that has become a template is left as it is, until it is none any more.
bool is_template_now(Run* run) {
    HeapTuple tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
    if (!HeapTupleIsValid(tuple))
        return false;
    bool is_template = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple))->datistemplate;
    ReleaseSysCache(tuple);
    if (is_template) {
        run->next_deadline = run->deadline;
        with_entry(MyDatabaseId, [](DatabaseEntry* entry) { entry->connectable = false; });
    }
    return is_template;
}

// The extension and its tables. In a database without it there is nothing to do, and nothing to
// come for.
Tables find_tables(Run* run) {
    Tables tables = {};
    char message[kErrorBytes] = "";
    MemoryContext context = CurrentMemoryContext;
    bool found = in_transaction(message, [&] {
        run->has_extension = OidIsValid(get_extension_oid("pg_interlock", true));
        if (!run->has_extension || is_template_now(run))
            return;
        tables = copy_tables(context, marker_tables(MarkerTables::kStored));
        tables.ready = true;
    });
    if (!found) {
        strlcpy(run->last_error, message, kErrorBytes);
        run->next_deadline = run->start + kRetryFailed;
    }
    return tables;
}

// The tables behind the one that the run before had to stop in come first, so that a table that
// takes all the time there is does not keep the others from their turn.
void rotate(Tables* tables, Oid last) {
    auto* rotated = static_cast<Oid*>(palloc(sizeof(Oid) * (tables->count + 1)));
    int count = 0;
    for (int i = 0; i < tables->count; i++)
        if (tables->oids[i] > last)
            rotated[count++] = tables->oids[i];
    for (int i = 0; i < tables->count; i++)
        if (tables->oids[i] <= last)
            rotated[count++] = tables->oids[i];
    tables->oids = rotated;
}

SweepResult sweep_one(const Run& run, Oid table, TimestampTz stop_at) {
    fire_triggers_at_once();
    SweepBudget budget;
    budget.stop_at = stop_at;
    budget.statement_timeout = kLongestBatch * run.pace;
    budget.before_attempt = note_attempt;
    if (table == run.resume_table) {
        budget.from = run.resume_from;
        budget.row_by_row = run.row_by_row;
    }
    return sweep_table(table, budget);
}

// By its OID when it is gone.
char* name_of_table(Oid table) {
    MemoryContext context = CurrentMemoryContext;
    char* name = nullptr;
    char ignored[kErrorBytes];
    (void)in_transaction(ignored, [&] {
        Oid schema = get_rel_namespace(table);
        if (OidIsValid(schema))
            name = in_context(context, [&] {
                return quote_qualified_identifier(get_namespace_name(schema), get_rel_name(table));
            });
    });
    return name != nullptr ? name : psprintf("%u", table);
}

// To be called outside a transaction.
void note_error(Run* run, Oid table, const char* message) {
    copy_message(run->last_error, kErrorBytes,
                 psprintf("table %s: %s", name_of_table(table), message));
}

void note_result(Run* run, Oid table, const SweepResult& result) {
    TimestampTz now = GetCurrentTimestamp();
    run->released += result.released;
    run->failed += result.failed;
    TimestampTz next = result.next_deadline;
    if (result.unfinished) {
        next = now;
        run->unfinished_table = table;
        run->reached = result.reached;
    }
    if (result.skipped > 0)
        next = Min(next, now + kRetryLocked);
    // What an earlier run tried in vain before the place where this one went on is tried again as
    // well.
    if (result.failed > 0 || table == run->resume_table)
        next = Min(next, now + kRetryFailed);
    if (result.failed > 0)
        note_error(run, table, result.last_error);
    run->next_deadline = Min(run->next_deadline, next);
}

// Markers of a prepared transaction are not to be seen until somebody commits it, and then nobody
// reports them: keep looking while there is one.
bool has_prepared_transactions() {
    bool found = false;
    with_spi([&] {
        SPI_execute(
            "SELECT FROM pg_catalog.pg_prepared_xacts WHERE database OPERATOR(pg_catalog.=) "
            "pg_catalog.current_database()",
            true, 1);
        found = SPI_processed > 0;
    });
    return found;
}

// A batch, or a few keys one by one when something is wrong with one of them. Whether there may be
// more.
bool sweep_some_keys(int pace, TimestampTz* first, char* message) {
    const int longest = 500 * pace; // milliseconds, and as much again for one by one
    constexpr int kOneByOne = 100;
    bool more = false;
    auto batch = [&] {
        fire_triggers_at_once();
        enable_timeout_after(STATEMENT_TIMEOUT, longest);
        more = delete_expired_keys(sweep_batch) == sweep_batch;
        disable_timeout(STATEMENT_TIMEOUT, false);
        *first = first_expiry();
    };
    auto one_by_one = [&] {
        fire_triggers_at_once();
        TimestampTz stop_at = GetCurrentTimestamp() + longest * INT64CONST(1000);
        more = delete_one_by_one(kOneByOne, stop_at) > 0;
        *first = first_expiry();
    };
    char ignored[kErrorBytes];
    if (!in_transaction(ignored, batch))
        (void)in_transaction(message, one_by_one);
    return more;
}

void sweep_keys(Run* run, TimestampTz stop_at) {
    pgstat_report_activity(STATE_RUNNING, "deleting expired idempotency keys");
    char message[kErrorBytes] = "";
    bool more = true;
    TimestampTz first = DT_NOEND;
    do {
        more = sweep_some_keys(run->pace, &first, message);
    } while (more && GetCurrentTimestamp() < stop_at);
    if (message[0] != '\0') {
        copy_message(run->last_error, kErrorBytes, psprintf("idempotency: %s", message));
        run->next_deadline = Min(run->next_deadline, GetCurrentTimestamp() + kRetryFailed);
    } else if (more) {
        run->next_deadline = run->start; // there are more that are due
    } else if (first != DT_NOEND) {
        run->next_deadline = Min(run->next_deadline, Max(first, run->start) + kKeySweepGap);
    }
}

// A table whose history is trimmed, batch by batch; smaller ones when one takes too long or fails.
void trim_table(Run* run, Oid table, TimestampTz stop_at) {
    const int longest = 500 * run->pace; // milliseconds
    TrimResult result = {};
    result.more = true;
    char message[kErrorBytes] = "";
    int32 size = sweep_batch;
    auto batch = [&] {
        fire_triggers_at_once();
        enable_timeout_after(STATEMENT_TIMEOUT, longest);
        result = trim_batch(table, result, size);
        disable_timeout(STATEMENT_TIMEOUT, false);
    };
    do {
        if (!in_transaction(message, batch))
            size = size == 1 ? 0 : Max(size / 10, 1);
    } while (result.more && size > 0 && GetCurrentTimestamp() < stop_at);
    if (size == 0) {
        note_error(run, table, message);
        run->next_deadline = Min(run->next_deadline, GetCurrentTimestamp() + kRetryFailed);
    } else {
        run->next_deadline = Min(run->next_deadline, result.more ? run->start : result.next);
    }
}

// Each table has its share of the time that is left, and another one is the first in each run. What
// came before does not leave them without any.
void trim_histories(Run* run, TimestampTz stop_at) {
    constexpr TimestampTz kLeast = USECS_PER_SEC / 5;
    pgstat_report_activity(STATE_RUNNING, "trimming history");
    Tables tables = {};
    char message[kErrorBytes] = "";
    MemoryContext context = CurrentMemoryContext;
    (void)in_transaction(message, [&] { tables = copy_tables(context, trimmed_tables()); });
    if (message[0] != '\0') {
        copy_message(run->last_error, kErrorBytes, psprintf("history: %s", message));
        run->next_deadline = Min(run->next_deadline, GetCurrentTimestamp() + kRetryFailed);
    }
    TimestampTz end = Max(stop_at, GetCurrentTimestamp() + kLeast);
    int first = static_cast<int>(run->start % Max(tables.count, 1));
    for (int i = 0; i < tables.count; i++) {
        TimestampTz now = GetCurrentTimestamp();
        if (now >= end) {
            run->next_deadline = run->start; // the others are due now
            break;
        }
        trim_table(run, tables.oids[(first + i) % tables.count],
                   now + (end - now) / (tables.count - i));
    }
}

void trim_log(Run* run, TimestampTz stop_at) {
    constexpr TimestampTz kGap = USECS_PER_MINUTE; // lines are deleted together
    pgstat_report_activity(STATE_RUNNING, "deleting old lines of the write log");
    char message[kErrorBytes] = "";
    bool more = true;
    TimestampTz next = DT_NOEND;
    auto batch = [&] {
        fire_triggers_at_once();
        more = trim_write_log(sweep_batch, &next);
    };
    do {
        (void)in_transaction(message, batch);
    } while (more && message[0] == '\0' && GetCurrentTimestamp() < stop_at);
    if (message[0] != '\0') {
        copy_message(run->last_error, kErrorBytes, psprintf("write log: %s", message));
        next = GetCurrentTimestamp() + kRetryFailed;
    } else if (next != DT_NOEND) {
        next = more ? run->start : Max(next, run->start) + kGap;
    }
    run->next_deadline = Min(run->next_deadline, next);
}

void sweep_database(Run* run) {
    pgstat_report_activity(STATE_RUNNING, "looking for tables with markers");
    Tables tables = find_tables(run);
    rotate(&tables, run->resume_table);
    run->pace = pace_of_server();
    limit_life(kLongestLife * run->pace);
    TimestampTz stop_at = GetCurrentTimestamp() + kLongestRun;
    for (int i = 0; i < tables.count; i++) {
        if (i > 0 && GetCurrentTimestamp() >= stop_at) {
            run->next_deadline = run->start; // the tables not reached are due now
            if (!OidIsValid(run->unfinished_table))
                run->unfinished_table = tables.oids[i - 1];
            break;
        }
        SweepResult result = {};
        char message[kErrorBytes] = "";
        char activity[64];
        snprintf(activity, sizeof(activity), "sweeping table %u", tables.oids[i]);
        pgstat_report_activity(STATE_RUNNING, activity);
        bool well =
            in_transaction(message, [&] { result = sweep_one(*run, tables.oids[i], stop_at); });
        LockReleaseAll(USER_LOCKMETHOD, true); // what its triggers locked for the session
        if (well) {
            note_result(run, tables.oids[i], result);
            continue;
        }
        note_error(run, tables.oids[i], message);
        run->failed++;
        run->next_deadline = Min(run->next_deadline, GetCurrentTimestamp() + kRetryFailed);
    }
    if (tables.ready) {
        sweep_keys(run, stop_at);
        trim_histories(run, stop_at);
        trim_log(run, stop_at);
    }
    char message[kErrorBytes] = "";
    bool look_again = false;
    if (tables.count > 0 && max_prepared_xacts > 0)
        in_transaction(message, [&] { look_again = has_prepared_transactions(); });
    if (look_again)
        run->next_deadline = Min(run->next_deadline, GetCurrentTimestamp() + kRetryLocked);
    pgstat_report_activity(STATE_IDLE, nullptr);
}

} // namespace

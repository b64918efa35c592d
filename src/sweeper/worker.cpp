// A worker of the sweeper: connects to one database, sweeps it, schedules the next run, and exits.
// It runs for about a second at most, so that it never blocks DROP DATABASE or CREATE DATABASE ...
// TEMPLATE, which wait five. The limits start when it has found its tables, and grow on a slow
// server (Run::pace), so that every worker sweeps at least one table. Until then the launcher
// limits its life.

#include "server/concept.h"
#include "server/library_version.h"
#include "sweeper/state.h"
#include "sweeper/task.h"

namespace interlock::inline sweeper {

constexpr TimestampTz kLongestRun = USECS_PER_SEC;
constexpr int kLongestLife = 3000; // milliseconds, then even a trigger that catches a cancel ends

namespace {

struct Run : SweepRun {
    TimestampTz deadline; // the one it is for
    bool has_extension;
    int first_task;
};

} // namespace

static void set_up_session();
static Run begin_run();
static void sweep_database(Run* run);
static void end_run(const Run& run);

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

static void set_up_session() {
    // Settings of the database or the server must neither stop nor change a sweep. A sweep that a
    // crash undoes is repeated: no need to wait for the disk.
    constexpr const char* settings[][2] = {
        {"search_path", "pg_catalog, pg_temp"},
        {"statement_timeout", "0"},
        {"lock_timeout", "0"},
        {"transaction_timeout", "0"}, // from 17 on
        {"idle_in_transaction_session_timeout", "0"},
        {"default_transaction_isolation", "read committed"},
        {"default_transaction_read_only", "off"},
        {"default_transaction_deferrable", "off"},
        {"citus.override_table_visibility", "off"}, // hides shards
        {"synchronous_commit", "off"}};
    for (auto& setting : settings)
        if (GetConfigOption(setting[0], true, false) != nullptr)
            SetConfigOption(setting[0], setting[1], PGC_SUSET, PGC_S_OVERRIDE);
    pgstat_report_appname("pg_interlock sweeper");
}

// The time a worker needs to find its tables, which runs no code of users, shows how slow the
// server is: there a trigger that does not hang is slow, too.
static int pace_of_server() {
    constexpr TimestampTz kUsual = USECS_PER_SEC / 5;
    constexpr TimestampTz kSlowest = 10;
    TimestampTz taken = GetCurrentTimestamp() - MyStartTimestamp;
    return static_cast<int>(Max(Min(taken / kUsual, kSlowest), 1));
}

static volatile sig_atomic_t life_has_ended = false;

static void end_life() {
    life_has_ended = true;
    ProcDiePending = true;
    InterruptPending = true;
    SetLatch(MyLatch);
}

// The server's own message blames an administrator.
static void log_early_end(int, Datum life) {
    if (life_has_ended)
        ereport(LOG, (errmsg("pg_interlock: a sweeper worker ended itself after %d ms",
                             DatumGetInt32(life)),
                      *attempted_table() == '\0'
                          ? 0
                          : errdetail("The last table it tried is %s.", attempted_table()),
                      errhint("A trigger of the table may catch the cancel of its statement.")));
}

static void limit_life(int life) {
    before_shmem_exit(log_early_end, Int32GetDatum(life));
    enable_timeout_after(RegisterTimeout(USER_TIMEOUT, end_life), life);
    with_entry(MyDatabaseId, [](DatabaseEntry* entry) { entry->ends_itself = true; });
}

// The deadline is reset before the rows are read, so that one reported from now on is not lost.
static Run begin_run() {
    Run run = {};
    run.start = GetCurrentTimestamp();
    run.has_extension = true;
    run.next_deadline = DT_NOEND;
    with_entry(MyDatabaseId, [&](DatabaseEntry* entry) {
        run.deadline = entry->next_deadline;
        run.resume = entry->stopped;
        run.first_task = entry->killed_in_a_row;
        if (entry->killed_in_a_row > 0)
            entry->left_out.add(entry->table);
        run.left_out = entry->left_out;
        entry->table = InvalidOid;
        entry->next_deadline = DT_NOEND;
    });
    return run;
}

static void end_run(const Run& run) {
    with_entry(MyDatabaseId, [&](DatabaseEntry* entry) {
        entry->running = false;
        entry->killed_in_a_row = 0;
        entry->left_out.count = 0;
        entry->has_extension = run.has_extension;
        lower_deadline(entry, run.next_deadline);
        entry->stopped = run.stopped;
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

// A database that has become a template is left as it is, until it is none any more.
static bool is_template_now(Run* run) {
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

namespace {

// A task and the tables that it has found.
struct Turn {
    const SweepTask* task;
    List* tables;
};

struct Turns {
    Turn* turns;
    int count;
    bool ready; // the database is to be swept
};

} // namespace

static void find_turns(Turns* found, MemoryContext context) {
    for (const Concept* each : concepts()) {
        if (each->sweep == nullptr)
            continue;
        List* tables = each->sweep->find_tables != nullptr ? each->sweep->find_tables() : NIL;
        found->turns[found->count++] = {each->sweep,
                                        in_context(context, [&] { return list_copy(tables); })};
    }
    found->ready = true;
}

// Workers come and go, so it is logged once for each version of the SQL.
static void log_versions(const char* sql) {
    bool logged = true;
    with_entry(MyDatabaseId, [&](DatabaseEntry* entry) {
        const char* version = fit_of(sql) != Fit::same ? sql : "";
        logged = strncmp(entry->logged_version, version, sizeof entry->logged_version - 1) == 0;
        strlcpy(entry->logged_version, version, sizeof entry->logged_version);
    });
    if (!logged && fit_of(sql) != Fit::same)
        ereport(LOG, (errmsg("pg_interlock: %s", describe_versions(sql)),
                      errhint("%s", advise_on_versions(sql))));
}

// Whether the library works with the SQL of this database. If not, the view sweeper says so.
static bool fits_sql(Run* run, const char* sql) {
    log_versions(sql);
    if (fit_of(sql) != Fit::fails)
        return true;
    strlcpy(run->last_error, describe_versions(sql), kErrorBytes);
    come_again(run, run->start + kRetryFailed);
    return false;
}

// The extension, and the work of each task. In a database without it there is no work, and no next
// run.
static Turns find_work(Run* run) {
    Turns found = {};
    found.turns = static_cast<Turn*>(palloc(sizeof(Turn) * (concepts().count + 1)));
    char message[kErrorBytes] = "";
    MemoryContext context = CurrentMemoryContext;
    bool well = in_transaction(message, [&] {
        const char* sql = extension_row().version;
        run->has_extension = sql != nullptr;
        if (run->has_extension && !is_template_now(run) && fits_sql(run, sql))
            find_turns(&found, context);
    });
    if (!well) {
        strlcpy(run->last_error, message, kErrorBytes);
        run->next_deadline = run->start + kRetryFailed;
    }
    return found;
}

// After a worker was ended, the next one begins with another task: the tables at which workers are
// ended may be more than can be left out.
static void sweep_database(Run* run) {
    Turns found = find_work(run);
    run->pace = pace_of_server();
    limit_life(kLongestLife * run->pace);
    run->stop_at = GetCurrentTimestamp() + kLongestRun;
    for (int i = 0; found.ready && i < found.count; i++) {
        const Turn& turn = found.turns[(run->first_task + i) % found.count];
        pgstat_report_activity(STATE_RUNNING, turn.task->activity);
        turn.task->run(run, turn.tables);
        end_table();
    }
    pgstat_report_activity(STATE_IDLE, nullptr);
}

} // namespace interlock::inline sweeper

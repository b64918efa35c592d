#include "sweeper/launcher.h"

#include "server/concept.h"
#include "server/monotonic.h"
#include "server/scope.h"
#include "sweeper/state.h"
#include "sweeper/sweeper.h"

namespace interlock::inline sweeper {

constexpr int kMaxWorkers = 64;
constexpr int64 kScanInterval = 60 * USECS_PER_SEC;
constexpr int64 kRetry = USECS_PER_SEC;          // after a worker that could not start
constexpr int64 kDistrust = 600 * USECS_PER_SEC; // after one that had to be ended
constexpr int64 kLongestStart = 20 * USECS_PER_SEC;
constexpr int64 kLongestStartDistrusted = 60 * USECS_PER_SEC; // it is in nobody's way

namespace {

struct RunningWorker {
    Oid database;
    bool is_distrusted;
    BackgroundWorkerHandle* handle;
};

// Times are by monotonic_now(): a clock that is set back must not stop it.
struct Launcher {
    RunningWorker workers[kMaxWorkers];
    int worker_count;
    int64 next_scan;
    int64 next_rescan;
    int64 no_start_before; // after the server had no slot for a worker
    bool out_of_slots;
};

} // namespace

static void forget_former_workers();
static void scan_databases(Launcher* launcher);
static void end_stuck_workers(const Launcher& launcher);
static void reap_workers(Launcher* launcher);
static void start_workers(Launcher* launcher);
static long wait_time(const Launcher& launcher);

extern "C" {

PGDLLEXPORT void sweeper_launcher_main(Datum argument);

void sweeper_launcher_main(Datum) {
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    pqsignal(SIGTERM, die);
    BackgroundWorkerUnblockSignals();
    BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
    pgstat_report_appname("pg_interlock launcher");
    publish_launcher();
    for (const Concept* each : concepts())
        if (each->launcher_starts != nullptr)
            each->launcher_starts();
    forget_former_workers();

    uint32 wait_event = named_wait_event("PgInterlockLauncher");
    Launcher launcher = {};
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        if (ConfigReloadPending) {
            ConfigReloadPending = false;
            ProcessConfigFile(PGC_SIGHUP);
        }
        end_stuck_workers(launcher);
        reap_workers(&launcher);
        scan_databases(&launcher);
        start_workers(&launcher);
        (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                        wait_time(launcher), wait_event);
        ResetLatch(MyLatch);
    }
}
}

// A restarted launcher has no handles of its predecessor's workers. They exit by themselves, and
// two in one database do not disturb each other.
static void forget_former_workers() {
    with_entries([](DatabaseEntry* entry) {
        if (entry->running)
            entry->next_deadline = 0;
        entry->running = false;
        return true;
    });
}

// A database as pg_database has it.
static void note_database(Form_pg_database form, bool rescan) {
    constexpr int kInvalidDatabase = -2; // left behind by an interrupted DROP DATABASE
    PgStat_StatDBEntry* statistics = rescan ? pgstat_fetch_stat_dbentry(form->oid) : nullptr;
    int64 rows = statistics != nullptr ? rows_written(statistics) : -1;
    TimestampTz now = GetCurrentTimestamp();
    bool connectable =
        form->datallowconn && !form->datistemplate && form->datconnlimit != kInvalidDatabase;
    with_entry(form->oid, [&](DatabaseEntry* entry) {
        if (!entry->scanned)
            lower_deadline(entry, now);
        else if (rows >= 0 && rows != entry->rows_written && entry->has_extension)
            lower_deadline(entry, now);
        if (rows >= 0)
            entry->rows_written = rows;
        entry->scanned = true;
        entry->connectable = connectable;
    });
}

static void forget_dropped_databases(List* present) {
    with_entries([&](DatabaseEntry* entry) {
        return entry->running || list_member_oid(present, entry->database);
    });
}

static bool has_unknown_database() {
    bool unknown = false;
    with_entries([&](DatabaseEntry* entry) {
        unknown = unknown || !entry->scanned;
        return true;
    });
    return unknown;
}

// Schedules a run in every database that is new, which at the start are all, and in those that were
// written to since their last run.
static void scan_databases(Launcher* launcher) {
    int64 now = monotonic_now();
    if (now < launcher->next_scan && !has_unknown_database())
        return;
    bool rescan = sweeper_rescan > 0 && now >= launcher->next_rescan;
    StartTransactionCommand();
    Relation catalog = table_open(DatabaseRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, nullptr, 0, nullptr);
    List* present = NIL;
    for (HeapTuple tuple; HeapTupleIsValid(tuple = systable_getnext(scan));) {
        auto* form = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple));
        present = lappend_oid(present, form->oid);
        note_database(form, rescan);
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    forget_dropped_databases(present);
    CommitTransactionCommand();

    launcher->next_scan = now + kScanInterval;
    if (rescan || launcher->next_rescan == 0)
        launcher->next_rescan = now + sweeper_rescan * USECS_PER_SEC;
    if (sweeper_rescan > 0)
        launcher->next_scan = Min(launcher->next_scan, launcher->next_rescan);
}

// When a worker is stuck unless it has found its work by then; PG_INT64_MAX if it has.
static int64 end_of_start(const RunningWorker& worker) {
    int64 end = PG_INT64_MAX;
    with_entry(worker.database, [&](DatabaseEntry* entry) {
        if (!entry->ends_itself)
            end = entry->started_at +
                  (worker.is_distrusted ? kLongestStartDistrusted : kLongestStart);
    });
    return end;
}

// A worker waits for the catalogs of its database, which the database's owner may lock for ever.
static void end_stuck_workers(const Launcher& launcher) {
    for (int i = 0; i < launcher.worker_count; i++)
        if (monotonic_now() >= end_of_start(launcher.workers[i]))
            TerminateBackgroundWorker(launcher.workers[i].handle);
}

static void reap_workers(Launcher* launcher) {
    for (int i = 0; i < launcher->worker_count;) {
        RunningWorker* worker = &launcher->workers[i];
        pid_t pid;
        if (GetBackgroundWorkerPid(worker->handle, &pid) != BGWH_STOPPED) {
            i++;
            continue;
        }
        bool killed = false;
        with_entry(worker->database, [&](DatabaseEntry* entry) {
            killed = entry->running; // a worker that finished has reset it
            entry->running = false;
            if (!killed)
                return;
            entry->killed_in_a_row++;
            entry->killed_at = monotonic_now();
            lower_deadline(entry,
                           GetCurrentTimestamp() + earliest_start(*entry) - entry->killed_at);
            strlcpy(entry->last_error, "a worker was ended before it was done", kErrorBytes);
        });
        if (killed)
            launcher->next_scan = 0; // it may be that the database was dropped
        pfree(worker->handle);
        *worker = launcher->workers[--launcher->worker_count];
    }
}

static bool start_worker(Launcher* launcher, Oid database, bool is_distrusted) {
    BackgroundWorker worker = {};
    snprintf(worker.bgw_name, BGW_MAXLEN, "pg_interlock sweeper of database %u", database);
    strlcpy(worker.bgw_type, "pg_interlock sweeper", BGW_MAXLEN);
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    strlcpy(worker.bgw_library_name, "pg_interlock", BGW_MAXLEN);
    strlcpy(worker.bgw_function_name, "sweeper_worker_main", BGW_MAXLEN);
    worker.bgw_main_arg = ObjectIdGetDatum(database);
    worker.bgw_notify_pid = MyProcPid; // our latch is set when it starts and when it ends
    RunningWorker* running = &launcher->workers[launcher->worker_count];
    running->database = database;
    running->is_distrusted = is_distrusted;
    bool started = in_context(TopMemoryContext, [&] {
        return RegisterDynamicBackgroundWorker(&worker, &running->handle);
    });
    if (started)
        launcher->worker_count++;
    return started;
}

static int most_workers() { return Min(sweeper_workers, kMaxWorkers); }

// A worker that had to be ended has occupied its slot for seconds, and the next one in its database
// may do the same.
static bool is_distrusted(const DatabaseEntry& entry, int64 now) {
    return entry.killed_at > 0 && now < entry.killed_at + kDistrust;
}

// Distrusted databases never take all the slots, unless there is but one.
static bool takes_distrusted(const Launcher& launcher) {
    int count = 0;
    for (int i = 0; i < launcher.worker_count; i++)
        count += launcher.workers[i].is_distrusted ? 1 : 0;
    return count + 1 < most_workers() || most_workers() == 1;
}

// Whether a worker could start now but for the deadline and the pause.
static bool is_eligible(const DatabaseEntry& entry, int64 now, bool with_distrusted) {
    return !entry.running && entry.connectable && (with_distrusted || !is_distrusted(entry, now));
}

namespace {

struct DueDatabase {
    Oid oid; // InvalidOid if none is due
    bool is_distrusted;
};

} // namespace

// The database with the earliest deadline.
static DueDatabase next_due_database(const Launcher& launcher) {
    int64 now = monotonic_now();
    DueDatabase due = {};
    TimestampTz earliest = GetCurrentTimestamp();
    bool with_distrusted = takes_distrusted(launcher);
    with_entries([&](DatabaseEntry* entry) {
        if (is_eligible(*entry, now, with_distrusted) && now >= earliest_start(*entry) &&
            entry->next_deadline <= earliest) {
            due = {entry->database, is_distrusted(*entry, now)};
            earliest = entry->next_deadline;
        }
        return true;
    });
    return due;
}

// Logs once that there is no slot, and once that there is one again.
static void note_slots(Launcher* launcher, bool out_of_slots) {
    if (out_of_slots && !launcher->out_of_slots)
        ereport(LOG,
                (errmsg("pg_interlock: no background worker slot is free, expired markers wait"),
                 errhint("You may need to increase max_worker_processes.")));
    else if (!out_of_slots && launcher->out_of_slots)
        ereport(LOG, (errmsg("pg_interlock: background worker slots are free again")));
    launcher->out_of_slots = out_of_slots;
}

static void start_workers(Launcher* launcher) {
    if (!sweeper_enabled || monotonic_now() < launcher->no_start_before)
        return;
    while (launcher->worker_count < most_workers()) {
        DueDatabase due = next_due_database(*launcher);
        if (!OidIsValid(due.oid))
            return;
        with_entry(due.oid, [](DatabaseEntry* entry) {
            entry->running = true;
            entry->ends_itself = false;
            entry->started_at = monotonic_now();
        });
        bool started = start_worker(launcher, due.oid, due.is_distrusted);
        note_slots(launcher, !started);
        if (started)
            continue;
        with_entry(due.oid, [](DatabaseEntry* entry) { entry->running = false; });
        launcher->no_start_before = monotonic_now() + kRetry;
        return;
    }
}

// Milliseconds until something is due. Ends of workers and new deadlines set the latch. A worker
// that was ended may take a while. Deadlines are by the system's clock: if it is set ahead
// meanwhile, the next scan finds what is due.
static long wait_time(const Launcher& launcher) {
    int64 next = launcher.next_scan;
    int64 now = monotonic_now();
    TimestampTz clock = GetCurrentTimestamp();
    bool may_start = sweeper_enabled && launcher.worker_count < most_workers();
    bool with_distrusted = takes_distrusted(launcher);
    with_entries([&](DatabaseEntry* entry) {
        if (may_start && entry->next_deadline != DT_NOEND &&
            is_eligible(*entry, now, with_distrusted))
            next = Min(next, Max(now + (entry->next_deadline - clock), earliest_start(*entry)));
        return true;
    });
    if (may_start)
        next = Max(next, launcher.no_start_before);
    for (int i = 0; i < launcher.worker_count; i++)
        next = Min(next, Max(end_of_start(launcher.workers[i]), now + kRetry));
    return static_cast<long>((Max(next - now, 0) + 999) / 1000);
}

void register_launcher() {
    if (IsBinaryUpgrade)
        return; // no process may write while pg_upgrade runs
    BackgroundWorker worker = {};
    strlcpy(worker.bgw_name, "pg_interlock launcher", BGW_MAXLEN);
    strlcpy(worker.bgw_type, "pg_interlock launcher", BGW_MAXLEN);
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished; // on a standby: at its promotion
    worker.bgw_restart_time = 5;
    strlcpy(worker.bgw_library_name, "pg_interlock", BGW_MAXLEN);
    strlcpy(worker.bgw_function_name, "sweeper_launcher_main", BGW_MAXLEN);
    RegisterBackgroundWorker(&worker);
}

} // namespace interlock::inline sweeper

#include "sweeper/state.h"

#include "server/shared_memory.h"

namespace interlock {

namespace {

constexpr const char* kTranche = "pg_interlock";

struct SharedState {
    Latch* launcher; // null while there is none; guarded by the lock
};

SharedState* state = nullptr;
HTAB* databases = nullptr;
LWLock* lock = nullptr;

// The earliest deadline of the current transaction. After a rolled back subtransaction it may be
// too early, which costs one look.
TimestampTz pending_deadline = DT_NOEND;

void request_memory() {
    RequestAddinShmemSpace(MAXALIGN(sizeof(SharedState)) +
                           hash_estimate_size(kMaxDatabases, sizeof(DatabaseEntry)));
    RequestNamedLWLockTranche(kTranche, 1);
}

void attach_memory() {
    bool found;
    state = static_cast<SharedState*>(
        ShmemInitStruct("pg_interlock sweeper", sizeof(SharedState), &found));
    if (!found)
        state->launcher = nullptr;
    HASHCTL control = {};
    control.keysize = sizeof(Oid);
    control.entrysize = sizeof(DatabaseEntry);
    databases = ShmemInitHash("pg_interlock databases", kMaxDatabases, kMaxDatabases, &control,
                              HASH_ELEM | HASH_BLOBS);
    lock = &GetNamedLWLockTranche(kTranche)->lock;
}

// Rows are visible to others when XACT_EVENT_COMMIT comes. Those of a prepared transaction are not
// yet: the worker that comes for them sees the transaction and looks again.
void report_deadline(XactEvent event, void*) {
    if (pending_deadline == DT_NOEND)
        return;
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_PREPARE && event != XACT_EVENT_ABORT)
        return;
    TimestampTz deadline = pending_deadline;
    pending_deadline = DT_NOEND;
    if (event == XACT_EVENT_ABORT)
        return;
    bool earlier = false;
    with_entry(MyDatabaseId, [&](DatabaseEntry* entry) {
        earlier = deadline < entry->next_deadline;
        lower_deadline(entry, deadline);
    });
    if (earlier)
        wake_launcher();
}

void withdraw_launcher(int, Datum) {
    LWLockAcquire(lock, LW_EXCLUSIVE);
    state->launcher = nullptr;
    LWLockRelease(lock);
}

} // namespace

void request_sweeper_memory() {
    add_shared_area({request_memory, attach_memory});
    RegisterXactCallback(report_deadline, nullptr);
}

bool sweeper_memory_is_there() { return state != nullptr; }

void note_deadline(TimestampTz until) {
    if (sweeper_memory_is_there())
        pending_deadline = Min(pending_deadline, until);
}

void publish_launcher() {
    LWLockAcquire(lock, LW_EXCLUSIVE);
    state->launcher = MyLatch;
    LWLockRelease(lock);
    on_shmem_exit(withdraw_launcher, 0);
}

void wake_launcher() {
    LWLockAcquire(lock, LW_SHARED);
    if (state->launcher != nullptr)
        SetLatch(state->launcher);
    LWLockRelease(lock);
}

TimestampTz earliest_start(const DatabaseEntry& entry) {
    constexpr TimestampTz kStartGap = USECS_PER_SEC / 2; // between two workers in one database
    constexpr int kLongestPause = 4; // times that a second is doubled after workers were killed
    if (entry.killed_in_a_row == 0)
        return entry.started_at + kStartGap;
    return entry.killed_at + (USECS_PER_SEC << Min(entry.killed_in_a_row - 1, kLongestPause));
}

LWLock* sweeper_lock() { return lock; }

HTAB* sweeper_databases() { return databases; }

DatabaseEntry* find_or_make_entry(Oid database) {
    bool found;
    auto* entry =
        static_cast<DatabaseEntry*>(hash_search(databases, &database, HASH_ENTER_NULL, &found));
    if (entry != nullptr && !found) {
        *entry = {};
        entry->database = database;
        entry->next_deadline = DT_NOEND;
    }
    return entry;
}

} // namespace interlock

#include "sweeper/state.h"

#include "server/shared_memory.h"

namespace interlock::inline sweeper {

constexpr const char* kTranche = "pg_interlock";

namespace {

struct SharedState {
    Latch* launcher; // null while there is none; guarded by the lock
};

} // namespace

static SharedState* state = nullptr;
static HTAB* databases = nullptr;
static LWLock* lock = nullptr;

static void request_memory() {
    RequestAddinShmemSpace(MAXALIGN(sizeof(SharedState)) +
                           hash_estimate_size(kMaxDatabases, sizeof(DatabaseEntry)));
    RequestNamedLWLockTranche(kTranche, 1);
}

static void attach_memory() {
    bool found;
    state = static_cast<SharedState*>(
        ShmemInitStruct("pg_interlock sweeper", sizeof(SharedState), &found));
    if (!found)
        state->launcher = nullptr;
    HASHCTL control = {};
    control.keysize = sizeof(Oid);
    control.entrysize = sizeof(DatabaseEntry);
    databases =
        shared_hash("pg_interlock databases", kMaxDatabases, &control, HASH_ELEM | HASH_BLOBS);
    lock = &GetNamedLWLockTranche(kTranche)->lock;
}

static void withdraw_launcher(int, Datum) {
    LWLockAcquire(lock, LW_EXCLUSIVE);
    state->launcher = nullptr;
    LWLockRelease(lock);
}

void request_sweeper_memory() { add_shared_area({request_memory, attach_memory}); }

bool sweeper_memory_is_there() { return state != nullptr; }

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

int64 earliest_start(const DatabaseEntry& entry) {
    constexpr int64 kStartGap = USECS_PER_SEC / 2; // between two workers in one database
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

} // namespace interlock::inline sweeper

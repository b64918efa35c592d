// The state in shared memory that backends, the launcher and the workers of the sweeper share.
//
// There is an entry for each database that has had a run or has set a deadline. Backends lower its
// deadline when they commit. When the deadline has passed, the launcher starts a worker. The worker
// resets the deadline before it reads the tables, and sets the next one afterwards. So a deadline
// that is reported meanwhile is not lost. A restart loses all entries. One run in each database
// restores them.
#pragma once

#include "sweeper/place.h"

namespace interlock::inline sweeper {

constexpr int kMaxDatabases = 1024;

struct DatabaseEntry {
    Oid database;              // hash key
    bool scanned;              // the launcher has seen it in pg_database
    bool connectable;          // it allows connections and is no template
    bool has_extension;        // a worker has found the extension there
    bool running;              // a worker was started and has not ended yet, as far as is known
    TimestampTz next_deadline; // of the next run; DT_NOEND: never
    int64 started_at;          // the last start of a worker, by monotonic_now()
    bool ends_itself;          // that worker has found its work and limits its own life
    int killed_in_a_row;       // consecutive workers that did not finish
    int64 killed_at;    // when the end of the last of them was noticed, as started_at; 0: never
    SweepPlace stopped; // where the last run was stopped
    Oid table;          // the table that the worker is sweeping
    LeftOut left_out;
    int64 rows_written; // the database's statistics at the last run
    int64 runs;
    int64 released;
    int64 failed;
    TimestampTz last_run;
    int64 lag; // microseconds between a deadline and its run
    int64 max_lag;
    char last_error[kErrorBytes]; // empty: the last run had no error
    int error_encoding;           // encoding of its database
    char logged_version[32];      // version of its SQL; empty: the library's
};

// Requests shared memory. Only if the library is preloaded. Without it the functions below do
// nothing.
void request_sweeper_memory();
bool sweeper_memory_is_there();

// Runs body(entry) for the entry of a database under an exclusive lock. Creates the entry if there
// is none. Does not run body() if there is no room for a new entry.
template <typename Body>
void with_entry(Oid database, Body&& body);

// Runs body(entry) for every entry under an exclusive lock. If body() returns false, the entry is
// removed.
template <typename Body>
void with_entries(Body&& body);

// The launcher's latch. A backend sets it when it reports an earlier deadline than the launcher
// knows.
void publish_launcher();
void wake_launcher();

inline void lower_deadline(DatabaseEntry* entry, TimestampTz deadline) {
    entry->next_deadline = Min(entry->next_deadline, deadline);
}

// When the next worker may start at the earliest, once its deadline has passed, by monotonic_now().
int64 earliest_start(const DatabaseEntry& entry);

LWLock* sweeper_lock();
HTAB* sweeper_databases();
DatabaseEntry* find_or_make_entry(Oid database); // the caller holds the lock

template <typename Body>
void with_entry(Oid database, Body&& body) {
    static_assert(std::is_trivially_destructible_v<std::remove_reference_t<Body>>);
    LWLockAcquire(sweeper_lock(), LW_EXCLUSIVE);
    DatabaseEntry* entry = find_or_make_entry(database);
    if (entry != nullptr)
        body(entry);
    LWLockRelease(sweeper_lock());
}

template <typename Body>
void with_entries(Body&& body) {
    static_assert(std::is_trivially_destructible_v<std::remove_reference_t<Body>>);
    LWLockAcquire(sweeper_lock(), LW_EXCLUSIVE);
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, sweeper_databases());
    while (auto* entry = static_cast<DatabaseEntry*>(hash_seq_search(&scan)))
        if (!body(entry))
            hash_search(sweeper_databases(), &entry->database, HASH_REMOVE, nullptr);
    LWLockRelease(sweeper_lock());
}

} // namespace interlock::inline sweeper

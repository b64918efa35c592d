// The state that backends, the launcher and the workers of the sweeper share, in shared memory.
//
// There is an entry for each database that has had a run or has set a deadline. Backends lower its
// deadline when they commit; the launcher starts a worker when it has passed; the worker resets the
// deadline before it reads the tables and sets the next one afterwards, so that a deadline reported
// meanwhile is never lost. A restart loses all entries; one run in each database restores them.
#pragma once

#include "sweeper/place.h"

namespace interlock::inline sweeper {

constexpr int kMaxDatabases = 1024;

struct DatabaseEntry {
    Oid database;              // hash key
    bool scanned;              // the launcher has seen it in pg_database
    bool connectable;          // it allows connections and is no template
    bool has_extension;        // a worker has found the extension there
    bool running;              // a worker was started and has not been seen to end
    TimestampTz next_deadline; // of the next run; DT_NOEND: never
    TimestampTz started_at;    // the last start of a worker
    bool ends_itself;          // that one has found its work and limits its life
    int killed_in_a_row;       // workers that did not come to their end
    TimestampTz killed_at;     // when the last of them was seen to have ended; 0: never
    SweepPlace stopped;        // where the last run had to stop
    Oid table;                 // that the worker is at
    LeftOut left_out;
    int64 rows_written; // the database's statistics at the last run
    int64 runs;
    int64 released;
    int64 failed;
    TimestampTz last_run;
    int64 lag; // microseconds between a deadline and the run for it
    int64 max_lag;
    char last_error[kErrorBytes]; // empty when the last run went well
    int error_encoding;           // that of its database
    char logged_version[32];      // of its SQL, if it is not that of the library; empty: it is
};

// Requests shared memory. Only while the library is preloaded; without it the functions below do
// nothing.
void request_sweeper_memory();
bool sweeper_memory_is_there();

// Runs body(entry) for the entry of a database, made if it is not there, under an exclusive lock;
// not at all when there is no room.
template <typename Body>
void with_entry(Oid database, Body&& body);

// Runs body(entry) for every entry under an exclusive lock; an entry is forgotten when it returns
// false.
template <typename Body>
void with_entries(Body&& body);

// The launcher's latch: set by a backend that reports an earlier deadline than the launcher knows.
void publish_launcher();
void wake_launcher();

inline void lower_deadline(DatabaseEntry* entry, TimestampTz deadline) {
    entry->next_deadline = Min(entry->next_deadline, deadline);
}

// When the next worker may start if its deadline has passed.
TimestampTz earliest_start(const DatabaseEntry& entry);

LWLock* sweeper_lock();
HTAB* sweeper_databases();
DatabaseEntry* find_or_make_entry(Oid database); // the lock must be held

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

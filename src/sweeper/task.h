// The work of a concept in a run of the sweeper.
//
// A run is the life of a worker (sweeper/worker.cpp) in one database. It calls each registered task
// (Concept::sweep) in turn, outside a transaction. The task opens short transactions, and reports
// when it needs the next run. The concepts include this file. It names no concept.
#pragma once

#include "server/scope.h"
#include "sweeper/place.h"

namespace interlock::inline sweeper {

// When to try rows again that are locked, and rows that have failed.
constexpr TimestampTz kRetryLocked = USECS_PER_SEC;
constexpr TimestampTz kRetryFailed = 10 * USECS_PER_SEC;

// A run in one database: its limits, and its results.
struct SweepRun {
    TimestampTz start;
    TimestampTz stop_at;       // nothing is begun after it, except the first batch of each task
    int pace;                  // factor for the limits of a statement; higher on a slow server
    TimestampTz next_deadline; // when to run again; come_again() lowers it
    int64 released;
    int64 failed;
    char last_error[kErrorBytes];
    SweepPlace resume;  // where the previous run was stopped, and where this run is stopped:
    SweepPlace stopped; // both are for the tables with markers
    LeftOut left_out;   // used by begin_table()
};

struct SweepTask {
    // Shown in pg_stat_activity while the task runs. The task may replace it.
    const char* activity = nullptr;

    // The tables that the task sweeps, a list of Oid in the current context. Called in a
    // transaction in which no user code runs, before the time limit of the run begins. Null: run()
    // finds its work itself.
    List* (*find_tables)() = nullptr;

    // The task's part of the run, outside a transaction. It always does at least one batch, however
    // late it is. It raises no error except inside in_transaction().
    void (*run)(SweepRun* run, List* tables) = nullptr;
};

// Requests another run at `at` or earlier.
inline void come_again(SweepRun* run, TimestampTz at) {
    run->next_deadline = Min(run->next_deadline, at);
}

// Writes "what: message" into the view, and requests another run.
void note_failure(SweepRun* run, const char* what, const char* message);

// The same for an error at a table. To be called outside a transaction: it starts its own.
void note_table_failure(SweepRun* run, Oid table, const char* message);

// Whether the table is swept on this server. It is not if a subscription writes the table, or if
// Citus distributes it: its rows are in shards, which are tables of their own.
bool is_swept(Oid table);

// To be called before code of the table's owner runs, in the same transaction. Returns false if the
// table is left out of this run (LeftOut), and requests another run. Also returns false unless
// is_swept().
bool begin_table(SweepRun* run, Oid table);

// To be called when the table is done, outside a transaction. If a worker is terminated afterwards,
// the table is not the reason. If the worker's life is over, it ends here, while the table still
// counts as the reason.
void end_table();

// Notes the position from which the next worker continues if this worker is terminated. To be
// called before a table with markers, and before each of its batches or rows.
void note_attempt(Oid table, const SweepPosition& position, bool is_batch);
// The table that was begun last and has not ended, with its database and schema. Otherwise empty.
const char* attempted_table();

// Makes deferred triggers fire at once until the transaction ends. Otherwise they would fire
// outside of the restricted operation, so the server refuses to queue them there.
void fire_triggers_at_once();

// Runs body() in its own transaction. Returns false if it failed. The error is then in the server's
// log, and its text in `message`, which has kErrorBytes bytes.
template <typename Body>
bool in_transaction(char* message, Body&& body);

// The same for a body that writes. Deferred triggers fire at once. A statement_timeout above zero,
// in milliseconds, cancels the body.
template <typename Body>
bool in_sweep_transaction(char* message, int statement_timeout, Body&& body);

bool run_in_transaction(char* message, void (*body)(void* context), void* context);

template <typename Body>
bool in_transaction(char* message, Body&& body) {
    static_assert(kIsPlainBody<Body>);
    auto run = [](void* context) { (*static_cast<std::remove_reference_t<Body>*>(context))(); };
    return run_in_transaction(message, run, &body);
}

template <typename Body>
bool in_sweep_transaction(char* message, int statement_timeout, Body&& body) {
    return in_transaction(message, [&] {
        fire_triggers_at_once();
        if (statement_timeout > 0)
            enable_timeout_after(STATEMENT_TIMEOUT, statement_timeout);
        body();
        if (statement_timeout > 0)
            disable_timeout(STATEMENT_TIMEOUT, false);
    });
}

} // namespace interlock::inline sweeper

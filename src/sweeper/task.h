// The work of a concept in a run of the sweeper.
//
// A run is the life of a worker (sweeper/worker.cpp) in one database. It calls each registered task
// (Concept::sweep) in turn, outside a transaction; the task opens short transactions, and reports
// when it needs the next run. The concepts include this file; it names none of them.
#pragma once

#include "server/scope.h"
#include "sweeper/place.h"

namespace interlock::inline sweeper {

// When to try again: rows that are locked, and rows that have failed.
constexpr TimestampTz kRetryLocked = USECS_PER_SEC;
constexpr TimestampTz kRetryFailed = 10 * USECS_PER_SEC;

// A run in one database: its limits, and its results.
struct SweepRun {
    TimestampTz start;
    TimestampTz stop_at;       // nothing is begun after it, but for the first batch of each task
    int pace;                  // factor of the limits of a statement; higher on a slow server
    TimestampTz next_deadline; // when to run again; come_again() lowers it
    int64 released;
    int64 failed;
    char last_error[kErrorBytes];
    SweepPlace resume;  // where the run before had to stop; these two are for the tables with
    SweepPlace stopped; // markers, and where this one had to
    LeftOut left_out;   // begin_table() asks it
};

struct SweepTask {
    // Shown in pg_stat_activity while the task runs; a task may replace it.
    const char* activity = nullptr;

    // The tables that it sweeps, a list of Oid in the current context. Called in a transaction in
    // which no user's code runs, before the limits of the run begin to count. Null: run() finds its
    // work itself.
    List* (*find_tables)() = nullptr;

    // The task's part of the run, outside a transaction. It gets at least one batch further,
    // however late it is, and never raises an error but in in_transaction().
    void (*run)(SweepRun* run, List* tables) = nullptr;
};

// Requests another run no later than `at`.
inline void come_again(SweepRun* run, TimestampTz at) {
    run->next_deadline = Min(run->next_deadline, at);
}

// Puts "context: message" into the view, and requests another run.
void note_failure(SweepRun* run, const char* what, const char* message);

// The same of a table. Outside a transaction: it has one of its own.
void note_table_failure(SweepRun* run, Oid table, const char* message);

// Before code of the table's owner runs, in the transaction in which it does. False: the table is
// left out of this run (LeftOut), and another run is requested; or a subscription writes it.
bool begin_table(SweepRun* run, Oid table);

// The table is done with: what ends the worker from now on is not of it. Outside a transaction;
// ends a worker whose life is over, while the table is still to blame.
void end_table();

// The position from which the next worker continues if this one is terminated: called before a
// table with markers, and before each of its batches or rows.
void note_attempt(Oid table, const SweepPosition& position, bool is_batch);
// That was begun last and not ended, with its database and schema; else empty.
const char* attempted_table();

// Makes deferred triggers fire at once, until the transaction ends. Deferred they would fire
// outside of the restricted operation, so the server refuses to queue one there.
void fire_triggers_at_once();

// Runs body() in a transaction of its own. False: it has failed; the error is in the server's log,
// and its text in `message`, of kErrorBytes.
template <typename Body>
bool in_transaction(char* message, Body&& body);

// The same for a body that writes: deferred triggers fire at once, and a statement_timeout above
// zero, in milliseconds, cancels the body.
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

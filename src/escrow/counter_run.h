// A run of the sweeper over counters, each in a transaction of its own: one that fails does not
// stop the others.
#pragma once

#include "sweeper/task.h"

namespace interlock {

struct CounterRun {
    SweepRun* run;
    MemoryContext context; // outlives the transactions
    List* failed;          // tables, once for each failure
    List* unused;          // columns without counters now
    bool begun;
};

CounterRun begin_counter_run(SweepRun* run);

// kFailed: its table fails, now or too often before, or is left out. kOver: the run's time is over,
// and body() did not run.
enum class Turn : uint8 { kDone, kFailed, kOver };

bool has_failed(const CounterRun& counters, Oid rel);
bool is_over(CounterRun* counters); // the first one is run in any case
int longest_turn(const CounterRun& counters);
void note_failed(CounterRun* counters, Oid rel, const char* message);
void leave_out(CounterRun* counters, Oid rel);

// A column whose counters have to stay as they are: each of them would take a transaction in each
// run.
void note_unused(CounterRun* counters, Oid rel, const NameData& column);
bool is_unused(const CounterRun& counters, Oid rel, const NameData& column);

// Runs body() for a counter of the table.
template <typename Body>
Turn run_counter(CounterRun* counters, Oid rel, Body&& body) {
    if (is_over(counters))
        return Turn::kOver;
    if (has_failed(*counters, rel))
        return Turn::kFailed;
    char message[kErrorBytes] = "";
    bool begins = true;
    bool well = in_sweep_transaction(message, longest_turn(*counters), [&] {
        begins = begin_table(counters->run, rel);
        if (begins)
            body();
    });
    end_table();
    if (well && begins)
        return Turn::kDone;
    if (!begins)
        leave_out(counters, rel);
    else
        note_failed(counters, rel, message);
    return Turn::kFailed;
}

// False where the extension, or its version with that table, is not installed.
bool has_internal_table(const char* name);

} // namespace interlock

// A run of the sweeper over counters. Each counter has its own transaction, so an error at one
// counter does not stop the others.
#pragma once

#include "sweeper/task.h"
#include "table/name.h"

namespace interlock::escrow {

struct CounterRun {
    SweepRun* run;
    MemoryContext context; // longer than the transactions
    TimestampTz stop_at;   // set so that earlier tasks leave some time for the counters
    List* left_out;        // tables that are skipped in the rest of this run
    bool begun;
    bool has_worked; // something was done, so there may be more to do
};

// A counter with work: it has parts, or reservations that have expired.
struct DueCounter {
    int64 id;
    Oid rel; // InvalidOid: the table is gone
    NameData column;
    text* key;
};

// Reads a row that SPI has returned, whose first columns are id, rel (0: gone), column_name and
// key. The result is in `context`.
DueCounter due_in_row(uint64 row, MemoryContext context);

CounterRun begin_counter_run(SweepRun* run);

// kFailed: the table failed or is skipped. kOver: the run's time is over, and body() did not run.
enum class Turn : uint8 { kDone, kFailed, kOver };

bool is_late(const CounterRun& counters); // the time is over, and a counter was begun
// To be called before each counter. Returns is_late(). If that is false, notes that a counter has
// begun.
bool is_over(CounterRun* counters);
void come_again_for_rest(CounterRun* counters);
int longest_turn(const CounterRun& counters);
void leave_out(CounterRun* counters, Oid rel);

// Runs body() for a counter of the table.
template <typename Body>
Turn run_counter(CounterRun* counters, Oid rel, Body&& body) {
    if (is_over(counters))
        return Turn::kOver;
    if (list_member_oid(counters->left_out, rel))
        return Turn::kFailed;
    char message[kErrorBytes] = "";
    bool begins = true;
    bool well = in_sweep_transaction(message, longest_turn(*counters), [&] {
        begins = begin_table(counters->run, rel);
        if (begins)
            body();
    });
    if (well && begins)
        return Turn::kDone;
    if (begins)
        note_table_failure(counters->run, rel, message);
    leave_out(counters, rel);
    return Turn::kFailed;
}

// Returns false if the extension is not installed, or a version of it without that table.
bool has_internal_table(const char* name);

} // namespace interlock::escrow

// A run of the sweeper over counters, each in a transaction of its own: one that fails does not
// stop the others.
#pragma once

#include "sweeper/task.h"
#include "table/name.h"

namespace interlock::escrow {

struct CounterRun {
    SweepRun* run;
    MemoryContext context; // outlives the transactions
    TimestampTz stop_at;   // earlier tasks do not leave the counters without any time
    List* left_out;        // tables that have no more turn in this run
    bool begun;
    bool has_worked; // something was done, so there may be more
};

// One that is due: it has parts, or reservations that have expired.
struct DueCounter {
    int64 id;
    Oid rel; // InvalidOid: it is gone
    NameData column;
    text* key;
};

// Of a row that SPI has returned, whose first columns are id, rel (0: gone), column_name and key;
// in the context.
DueCounter due_in_row(uint64 row, MemoryContext context);

CounterRun begin_counter_run(SweepRun* run);

// kFailed: its table fails, or is left out. kOver: the run's time is over, and body() did not run.
enum class Turn : uint8 { kDone, kFailed, kOver };

bool is_late(const CounterRun& counters); // its time is over, and a counter was begun
bool is_over(CounterRun* counters);       // the same, before a counter is begun
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

// False where the extension, or its version with that table, is not installed.
bool has_internal_table(const char* name);

} // namespace interlock::escrow

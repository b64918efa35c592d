// A run of the sweeper over counters, each in a transaction of its own: one that fails does not
// stop the others.
#pragma once

#include "sweeper/task.h"
#include "table/name.h"

namespace interlock {

struct CounterRun {
    SweepRun* run;
    MemoryContext context; // outlives the transactions
    TimestampTz stop_at;   // earlier tasks do not leave the counters without any time
    List* failed;          // tables, once for each failure
    List* unused;          // columns without counters now
    List* spent;           // of owners: the time that their counters took
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

// kFailed: its table fails, now or too often before, or is left out. kOver: the run's time is over,
// and body() did not run.
enum class Turn : uint8 { kDone, kFailed, kOver };

bool has_failed(const CounterRun& counters, Oid rel);
bool is_late(const CounterRun& counters); // its time is over, and a counter was begun
bool is_over(CounterRun* counters);       // the same, before a counter is begun
void come_again_for_rest(CounterRun* counters);
int longest_turn(const CounterRun& counters);
void note_failed(CounterRun* counters, Oid rel, const char* message);
void leave_out(CounterRun* counters, Oid rel);

// An owner has half of a run, so that one whose triggers take long, at however many counters, does
// not keep others from their turn. Whether it has had that; the time of a counter is noted after
// it.
bool has_had_share(const CounterRun& counters, Oid owner);
void note_spent(CounterRun* counters, Oid owner, TimestampTz time);

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
    bool is_turn = true;
    Oid owner = InvalidOid;
    TimestampTz began = GetCurrentTimestamp();
    bool well = in_sweep_transaction(message, longest_turn(*counters), [&] {
        owner = owner_of_table(rel);
        is_turn = !has_had_share(*counters, owner);
        begins = is_turn && begin_table(counters->run, rel);
        if (begins)
            body();
    });
    note_spent(counters, owner, GetCurrentTimestamp() - began);
    if (well && begins)
        return Turn::kDone;
    if (!is_turn)
        come_again_for_rest(counters);
    if (!begins)
        leave_out(counters, rel);
    else
        note_failed(counters, rel, message);
    return Turn::kFailed;
}

// False where the extension, or its version with that table, is not installed.
bool has_internal_table(const char* name);

} // namespace interlock

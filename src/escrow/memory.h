// The entries of escrow counters in shared memory: what each counter is worth at worst and at best.
// Only while the library is preloaded.
//
// An entry is found, tested and changed in one step, and stays while it has pins: one for each item
// of a transaction's list and for each note of a prepared transaction (E8).
#pragma once

#include "escrow/escrow.h"

namespace interlock::inline server {
struct UsageReport;
} // namespace interlock::inline server

namespace interlock::escrow {

// What the end of a transaction does to an entry: inf grows, sup shrinks.
struct Effects {
    int64 inf_on_commit;
    int64 sup_on_commit;
    int64 inf_on_abort;
    int64 sup_on_abort;

    void add(const Effects& other) {
        inf_on_commit += other.inf_on_commit;
        sup_on_commit += other.sup_on_commit;
        inf_on_abort += other.inf_on_abort;
        sup_on_abort += other.sup_on_abort;
    }
    void remove(const Effects& other) {
        add({-other.inf_on_commit, -other.sup_on_commit, -other.inf_on_abort, -other.sup_on_abort});
    }
};

// What a part changes: the value, and what is reserved. A reservation of n is {-n, n}, its
// confirmation {0, -n}, its cancellation {n, -n}.
struct Part {
    int64 amount;
    int64 reserved;
};

// At once, inf loses what it would get back at a rollback, and sup gets what it would lose.
inline Effects effects_of(const Part& part) {
    int64 sup = part.amount + part.reserved;
    return {Max(part.amount, 0), Max(-sup, 0), Max(-part.amount, 0), Max(sup, 0)};
}

struct EscrowEntry;

// When its parts were added to its row.
struct FoldTimes {
    TimestampTz folded_at;  // by the sweeper; 0: not since the entry is there
    TimestampTz changed_at; // the first change that a fold has not seen; 0: none
};

enum class Verdict : uint8 { kGranted, kPending, kInsufficient, kNoEntry };

// The values of a counter if its undecided transactions end in the worst and in the best way.
struct Range {
    int64 inf;
    int64 sup;
};

struct CounterState {
    Range range;
    Effects open; // what transactions that are undecided will do, all of them together
};

// What a delta would get.
Verdict test_delta(Range range, int64 delta, EscrowLimits limits);

// Whether a delta that is pending would fit if the open transactions ended in the best way. Else it
// waits for reservations, or for the transaction itself, whose effects are not in `open`.
bool can_fit(const CounterState& state, int64 delta, EscrowLimits limits);

bool has_escrow_memory();

// Tests and changes the entry of that epoch, and pins it (E1). A refusal comes after the notes are
// settled (E5). `after` gets the state then. Raises nothing.
Verdict grant_in_memory(int64 counter, uint64 epoch, const Part& part, EscrowLimits limits,
                        EscrowEntry** entry, CounterState* after);
bool has_entry(int64 counter, uint64 epoch);

// Pins the entry of that epoch for a part that needs no test and is not granted before the commit.
// False: there is none.
bool pin_entry(int64 counter, uint64 epoch, const Part& part, EscrowEntry** entry);

// Applies the effects with which it was pinned, and removes one pin.
void end_pin(EscrowEntry* entry, const Effects& effects, bool committed);

// A transaction that may still commit, as a load finds it.
struct InDoubt {
    TransactionId xid;
    Effects effects;
};

// Enters a counter (E6). False when there is no room for it. Merges those in doubt.
bool enter_counter(int64 counter, uint64 epoch, Oid trigger, Range range, InDoubt* in_doubt,
                   int count);

// Removes the entry: under the exclusive gate, when no other transaction is undecided (E10). One
// with parts of this transaction stays unused until it has ended.
void drop_entry(int64 counter);

// Removes all of a database that are not pinned, as an eviction does. For one that was dropped,
// too: CREATE DATABASE can give another one its OID, and copies of one template have the same
// counters and triggers.
void drop_entries_of(Oid database);
void watch_dropped_databases(); // once, where the library is preloaded

// After the commit of a fold that began then.
void note_fold(int64 counter, TimestampTz began);

// The entry as it is, of whatever epoch; false when there is none.
struct EntryState {
    uint64 epoch;
    Oid trigger;
    Range range;
    FoldTimes times;
    bool is_decided; // no transaction that has changed it is open
};
bool read_entry(int64 counter, EntryState* state);

// Notes of this transaction, which is about to be prepared: one for each item. False: no room.
// They count from keep_notes on.
bool reserve_note(EscrowEntry* entry, const Effects& effects, int* note);
void keep_note(int note);
void free_note(int note);

// Applies the notes of transactions that have ended. One that is older than the commit log makes
// its entry go, to be loaded again, as soon as nothing else pins it.
void settle_notes();

void preload_escrow();

void report_escrow_usage(UsageReport* report);

} // namespace interlock::escrow

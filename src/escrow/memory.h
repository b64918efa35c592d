// The entries of escrow counters in shared memory: the lowest and the highest value that each
// counter can get. They exist only if the library is preloaded.
//
// An entry is found, tested and changed in one step. It stays while it has pins: one for each item
// of a transaction's list, and one for each note of a prepared transaction (E8).
#pragma once

#include "escrow/escrow.h"

namespace interlock::inline server {
struct UsageReport;
} // namespace interlock::inline server

namespace interlock::escrow {

// The effect of a transaction's end on an entry: inf grows, sup shrinks.
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

// What a call changes: the value, and the reserved amount. A reservation of n is {-n, n}, its
// confirmation {0, -n}, its cancellation {n, -n}. A part is a delta in the journal.
struct Delta {
    int64 amount;
    int64 reserved;
};

// At the grant, inf loses what a rollback would return to it, and sup gains what a rollback would
// subtract.
inline Effects effects_of(const Delta& delta) {
    int64 sup = delta.amount + delta.reserved;
    return {Max(delta.amount, 0), Max(-sup, 0), Max(-delta.amount, 0), Max(sup, 0)};
}

struct EscrowEntry;

// The times of the last fold of a counter.
struct FoldTimes {
    TimestampTz folded_at;  // the sweeper's last fold; 0: none since the entry exists
    TimestampTz changed_at; // the first change after the last fold; 0: none
};

// What a delta gets. kNoEntry: memory cannot say, as it has no entry of the counter.
enum class Verdict : uint8 { kGranted, kInsufficient, kPending, kNoRow, kNoEntry };

// The values of a counter if its undecided transactions end in the worst and in the best way.
struct Range {
    int64 inf;
    int64 sup;
};

struct CounterState {
    Range range;
    Effects open; // the effects of all undecided transactions together
};

// The answer for a delta.
Verdict test_delta(Range range, int64 delta, EscrowLimits limits);

// Whether a pending delta would fit if the open transactions ended in the best way. If not, it
// depends on reservations, or on the transaction itself, whose effects are not in `open`.
bool can_fit(const CounterState& state, int64 delta, EscrowLimits limits);

bool has_escrow_memory();

// Tests and changes the entry of that epoch, and pins it (E1). Before a refusal, notes are settled
// (E5). `after` gets the state. Raises nothing.
Verdict grant_in_memory(int64 counter, uint64 epoch, const Delta& delta, EscrowLimits limits,
                        EscrowEntry** entry, CounterState* after);
bool has_entry(int64 counter, uint64 epoch);

// Pins the entry of that epoch for a delta that needs no test and takes effect at the commit.
// Returns false if there is no entry.
bool pin_entry(int64 counter, uint64 epoch, const Delta& delta, EscrowEntry** entry);

// Applies the effects for which the entry was pinned, and removes one pin.
void end_pin(EscrowEntry* entry, const Effects& effects, bool committed);

// A transaction that may still commit, found by a load.
struct InDoubt {
    TransactionId xid;
    Effects effects;
};

// Adds an entry for a counter (E6). Returns false if there is no room. Notes of the same
// transaction are merged.
bool enter_counter(int64 counter, uint64 epoch, Oid trigger, Range range, InDoubt* in_doubt,
                   int count);

// Removes the entry. Under the exclusive gate, when no other transaction is undecided (E10). An
// entry with parts of this transaction stays unused until it has ended.
void drop_entry(int64 counter);

// Removes all entries of a database that are not pinned, as an eviction does. Also for a database
// that was dropped: CREATE DATABASE can use its OID again, and copies of one template have the same
// counters and triggers.
void drop_entries_of(Oid database);
void watch_dropped_databases(); // called once, if the library is preloaded

// To be called after the commit of a fold that began at that time.
void note_fold(int64 counter, TimestampTz began);

// The current content of the entry, of whatever epoch. Returns false if there is none.
struct EntryState {
    uint64 epoch;
    Oid trigger;
    Range range;
    FoldTimes times;
    bool is_decided; // no transaction that has changed it is open
};
bool read_entry(int64 counter, EntryState* state);

// Reserves a note for an item of this transaction, which is about to be prepared. Returns false if
// there is no room. A note counts after keep_note().
bool reserve_note(EscrowEntry* entry, const Effects& effects, int* note);
void keep_note(int note);
void free_note(int note);

// Applies the notes of transactions that have ended. If a transaction is older than the commit log,
// its entry is removed as soon as nothing else pins it, and loaded again.
void settle_notes();

void preload_escrow();

void report_escrow_usage(UsageReport* report);

} // namespace interlock::escrow

// Changes of counters, by parts or in the row.
#pragma once

#include "escrow/journal.h"
#include "execution/probe.h"

namespace interlock::escrow {

// A counter that a call or a trigger changes. Its column is usable.
struct EscrowCounter {
    KeyedRow row;
    const EscrowColumn* column;
    EscrowLimits limits;
    CounterName name;
    int64 id; // 0: it has none yet
};

EscrowCounter counter_of(const KeyedRow& row, const EscrowColumn* column);

// What UPDATE ... SET column = column - 1 WHERE key = ... needs: 42501. Before the gate, where a
// caller without them would make others wait.
void require_change_rights(Relation rel, const EscrowColumn& column);

// SELECT on the columns of the key: else an answer would tell which keys there are.
void require_key_rights(Relation rel, const EscrowColumn& column);

// The gate (E10), to the end of the transaction. False: not at once, and the call does not wait.
bool enter_gate(const EscrowCounter& counter, LOCKMODE mode, bool wait = true);
// Undoes one entry of this transaction, under which it has changed nothing.
void leave_gate(const EscrowCounter& counter, LOCKMODE mode);

// Row security hides rows from the caller. It reads a row before it comes to the gate then: where
// it sees none, others would wait for it, and it could tell by its own wait that the row is there.
bool has_policies(Relation rel);
bool sees_row(const EscrowCounter& counter);

// The counter of that id and name. Null when no unique index names its row: the owner has changed
// the table's key, or the trigger.
EscrowCounter* counter_of_name(Relation rel, const TableInfo* info, const EscrowColumn* column,
                               int64 id, text* name);

// Finds the id of the counter, which then stays: call it in the gate. Where the counter has none
// yet, another session may create it until the row is locked.
void find_id(EscrowCounter* counter);

// A delta gets into a counter in one of three ways, each in the gate. Of a verdict that is pending
// `after` has what is open without this transaction's own.
//
// In memory (E1): the entry is loaded where there is none, and the part is in the journal.
// kNoEntry: the counter can have no entry now.
Verdict change_in_memory(EscrowCounter* counter, const Delta& delta, CounterState* after);

// In the row (E13), under its lock, where its column has `value`: returns in *value what the row
// gets, with the parts that are visible.
Verdict change_in_row(EscrowCounter* counter, const Delta& delta, int64* value,
                      CounterState* after);

// The same for a row that cannot be written now: the part is in the journal.
Verdict change_beside_row(EscrowCounter* counter, const Delta& delta, int64 value,
                          CounterState* after);

// Enters a delta that gives back or keeps what was reserved: it needs no test. As the owner of the
// table. Without an entry the lock of the row, to the end of the transaction, keeps others from
// loading one. False: the row is locked, and the call does not wait; or there is none.
bool enter_untested(const EscrowCounter& counter, const Delta& delta, bool wait);

// Writes the value into the row, for the trigger to let it pass. False: there is no such row.
bool write_value(const EscrowCounter& counter, int64 value);

// Locks the row and reads the column; false when there is none, or when it is locked and `wait` is
// false. A wait is counted for the verbs whose calls are.
bool lock_value(const EscrowCounter& counter, bool wait, int64* value,
                CountedKind counted_as = CountedKind::kNone);

// Deletes the parts, all of which are committed, and the expired reservations, and drops the entry:
// under the exclusive gate and the lock of the row. Adds them to the sum.
void end_parts(const EscrowCounter& counter, AmountSum* sum);

// Raises IL012.
[[noreturn]] void raise_not_enough(const EscrowCounter& counter, int64 delta, Verdict verdict,
                                   const CounterState* state);

// The same without the amount and its direction, for who must not know them.
[[noreturn]] void raise_does_not_fit(const EscrowCounter& counter, Verdict verdict);

} // namespace interlock::escrow

// Changes of counters, as parts or in the row.
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
    int64 id; // 0: it has no id yet
};

EscrowCounter counter_of(const KeyedRow& row, const EscrowColumn* column);

// Checks the privileges that UPDATE ... SET column = column - 1 WHERE key = ... needs. Raises
// 42501. To be called before the gate, because a caller without them must not make others wait.
void require_change_rights(Relation rel, const EscrowColumn& column);

// Checks SELECT on the columns of the key. Without it an answer would show which keys exist.
void require_key_rights(Relation rel, const EscrowColumn& column);

// Locks the gate (E10) until the end of the transaction. Returns false if it is not available at
// once and `wait` is false.
bool enter_gate(const EscrowCounter& counter, LOCKMODE mode, bool wait = true);
// Undoes one enter_gate() of this transaction, if it has changed nothing since.
void leave_gate(const EscrowCounter& counter, LOCKMODE mode);

// Whether row security hides rows from the caller. The caller must then read a row before it locks
// the gate. Otherwise others would wait for a caller who does not see the row, and the caller could
// tell from its own wait that the row exists.
bool has_policies(Relation rel);
bool sees_row(const EscrowCounter& counter);

// The counter with that id and name. Null if no unique index names its row, because the owner has
// changed the table's key or the trigger.
EscrowCounter* counter_of_name(Relation rel, const TableInfo* info, const EscrowColumn* column,
                               int64 id, text* name);

// Finds the id of the counter, which then stays the same. Call it in the gate. If the counter has
// no id yet, another session may create it until the row is locked.
void find_id(EscrowCounter* counter);

// A delta is entered in one of three ways, each in the gate. If the verdict is pending,
// `after->open` does not include the transaction's own effects.
//
// In memory (E1): loads the entry if there is none, and puts the part into the journal. kNoEntry:
// the counter cannot have an entry now.
Verdict change_in_memory(EscrowCounter* counter, const Delta& delta, CounterState* after);

// In the row (E13), under its lock. *value is the column's value. Sets *value to the new value of
// the row, which includes all visible parts.
Verdict change_in_row(EscrowCounter* counter, const Delta& delta, int64* value,
                      CounterState* after);

// The same for a row that cannot be written now: the part goes into the journal.
Verdict change_beside_row(EscrowCounter* counter, const Delta& delta, int64 value,
                          CounterState* after);

// Enters a delta that returns or keeps a reserved amount. Does not test the limits. Runs as the
// owner of the table. If there is no entry, the lock of the row prevents a load until the end of
// the transaction. Returns false if the row is locked and `wait` is false, or if there is no row.
bool enter_untested(const EscrowCounter& counter, const Delta& delta, bool wait);

// Writes the value into the row so that the trigger lets it pass. Returns false if there is no such
// row.
bool write_value(const EscrowCounter& counter, int64 value);

// Locks the row and reads the column. Returns false if there is no row, or if it is locked and
// `wait` is false. A wait is counted under `counted_as`.
bool lock_value(const EscrowCounter& counter, bool wait, int64* value,
                CountedKind counted_as = CountedKind::kNone);

// Deletes the parts, which are all committed, and the expired reservations, adds them to the sum,
// and drops the entry. Under the exclusive gate and the lock of the row.
void end_parts(const EscrowCounter& counter, AmountSum* sum);

} // namespace interlock::escrow

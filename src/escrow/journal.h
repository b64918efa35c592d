// The tables of escrow counters: interlock_internal.escrow_counter has the counters, and
// escrow_part their parts. They are written without statements, for callers who have no privilege
// on them.
#pragma once

#include "escrow/memory.h"

namespace interlock::escrow {

// What a counter is found by: the values of the key, as text.
struct CounterName {
    Oid rel;
    const NameData* column; // EscrowColumn::label
    text* key;
};

// The type of a key column may have no settings or collation that make one value two texts.
bool may_name_counter(const TableInfo* info, AttrNumber attnum);
text* counter_key(const TableInfo* info, const EscrowColumn& column, const Key& key);
// Null: one of them is null, as can be once the table's key is another one.
text* counter_key(const TableInfo* info, const EscrowColumn& column, HeapTuple row);

// The key whose values the text has. False: there is no such key now.
bool read_counter_key(const TableInfo* info, const EscrowColumn& column, const text* values,
                      Key* key);

// The key must be the one by which the counters go: 22023 for the values of another unique index,
// 55000 where the table has got another key.
void require_counter_key(Relation rel, const TableInfo* info, const EscrowColumn& column,
                         const Key& key);

Oid counter_table();

// Of a row of that table. False: a part of it is null.
bool read_name(Relation counters, HeapTuple row, CounterName* name);

// As of now, whatever the snapshot of the transaction is; 0: none.
int64 find_counter(const CounterName& name);
int64 counter_in_snapshot(const CounterName& name); // under the active snapshot
int64 create_counter(const CounterName& name);
// Whether there is a counter of that id, as of now, and where.
bool read_counter(int64 counter, Oid* rel, NameData* column, text** key = nullptr);
void delete_counter(int64 counter);
// Those of a column that has got another label.
void rename_counters(Oid rel, const NameData& from, const NameData& to);

// The first counter from an id on that has parts, as of now. Deleted parts stay in the index while
// a snapshot of any transaction may see them, and each is stepped over: after a million of them the
// walk gives up the counter that it is at, and resumes behind it in another call.
struct NextCounter {
    int64 id;     // 0: none so far
    int64 resume; // 0: there are no more
};
NextCounter next_counter_with_parts(int64 from);

// Deletes the parts of all counters of the column, and the counters that have no reservations, past
// snapshots. Returns the number of parts. Under ACCESS EXCLUSIVE.
int64 forget_counters(Oid rel, const NameData& column);
// All of them, as of now.
int64* counters_of(Oid rel, const NameData& column, int* count);
// Of one table, or of all (InvalidOid), as of now; tables may be gone.
struct CounterRow {
    int64 id;
    Oid rel;
    NameData label;
    text* key;
};
struct CounterRows {
    CounterRow* first;
    int count;
};
CounterRows all_counters(Oid rel);
// Whether one of them has parts, past snapshots. Likewise.
bool has_parts(Oid rel, const EscrowColumn& column);

// The sequence of the numbers of parts has been moved: from now on no session uses numbers that it
// took before.
void forget_part_numbers();

void insert_part(const EscrowColumn& column, int64 counter, const Part& part);

// Deletes the parts that the transaction sees, as they came, and adds them to the sum (E9). Under
// the lock of the row, or of the gate. False: there are more, and it is later than stop_at. It does
// not stop where the row would leave the limits with these parts alone (V3).
bool take_parts(const EscrowColumn& column, int64 counter, AmountSum* sum,
                TimestampTz stop_at = DT_NOEND, const EscrowLimits* limits = nullptr);

// Deletes the parts of a counter whose table is gone, and then the counter. False as above.
bool forget_counter(int64 counter, TimestampTz stop_at);

// Adds the parts under the active snapshot.
void add_parts(const EscrowColumn& column, int64 counter, AmountSum* sum);

// What parts and reservations amount to past snapshots (E6): the sums of those that are committed,
// and the parts of transactions in progress, also of this one. Call under the lock of the row.
struct UndecidedParts {
    AmountSum committed;
    int committed_count;
    AmountSum reserved;
    InDoubt* in_doubt;
    int count;
};
UndecidedParts read_undecided(const EscrowColumn& column, int64 counter);

Range range_of(int64 row, const UndecidedParts& parts);

// A transaction of another session whose end can make room for the delta; InvalidTransactionId when
// there is none.
TransactionId deciding_transaction(const EscrowColumn& column, int64 counter, int64 delta);

} // namespace interlock::escrow

// The tables of escrow counters. interlock_internal.escrow_counter has the counters, and
// escrow_part has their parts. They are written without statements, for callers who have no
// privilege on them.
#pragma once

#include "escrow/memory.h"

namespace interlock::escrow {

// What identifies a counter. The values of the key are stored as text.
struct CounterName {
    Oid rel;
    const NameData* column; // EscrowColumn::label
    text* key;
};

// Whether the type of a key column has one text for each value. Settings or collations must not
// give one value two texts.
bool may_name_counter(const TableInfo* info, AttrNumber attnum);
text* counter_key(const TableInfo* info, const EscrowColumn& column, const Key& key);
// The values of the key as text. Null if one of them is null, which is possible after the table's
// key has changed.
text* counter_key(const TableInfo* info, const EscrowColumn& column, HeapTuple row);

// The key with the values in the text. Returns false if there is no such key now.
bool read_counter_key(const TableInfo* info, const EscrowColumn& column, const text* values,
                      Key* key);

// Checks that the key is the one that identifies the counters. Raises 22023 for the values of
// another unique index, and 55000 if the table has another key now.
void require_counter_key(Relation rel, const TableInfo* info, const EscrowColumn& column,
                         const Key& key);

Oid counter_table();

// Reads a row of the table of counters. Returns false if a part of the name is null.
bool read_name(Relation counters, HeapTuple row, CounterName* name);

// The id of the counter, read without the transaction's snapshot. 0 if there is none.
int64 find_counter(const CounterName& name);
int64 counter_in_snapshot(const CounterName& name); // under the active snapshot
int64 create_counter(const CounterName& name);
// Whether there is a counter with that id, and for which row. Read without the transaction's
// snapshot.
bool read_counter(int64 counter, Oid* rel, NameData* column, text** key = nullptr);
void delete_counter(int64 counter);
// Renames the counters of a column that has another label now.
void rename_counters(Oid rel, const NameData& from, const NameData& to);

// Finds the first counter with parts, from an id on, without the transaction's snapshot. Deleted
// parts stay in the index while a snapshot of any transaction may see them, and the scan skips each
// of them. After a million of them it leaves the current counter, and another call resumes after
// it.
struct NextCounter {
    int64 id;     // 0: none found
    int64 resume; // 0: no more counters
};
NextCounter next_counter_with_parts(int64 from);

// Deletes the parts of all counters of the column, and the counters without reservations, also
// those that no snapshot sees. Returns the number of parts. Under ACCESS EXCLUSIVE.
int64 forget_counters(Oid rel, const NameData& column);
// All counters of the column, read without the transaction's snapshot.
int64* counters_of(Oid rel, const NameData& column, int* count);
// The counters of one table, or of all tables (InvalidOid), as they are now. Tables may be gone.
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
// Whether one of the column's counters has parts, also parts that no snapshot sees. Under ACCESS
// EXCLUSIVE.
bool has_parts(Oid rel, const EscrowColumn& column);

// The sequence of part numbers was moved. No session may use numbers that it has reserved before.
void forget_part_numbers();

void insert_part(const EscrowColumn& column, int64 counter, const Delta& delta);

// Deletes the parts that the transaction sees, in their order, and adds them to the sum (E9). Under
// the lock of the row or of the gate. Returns false if there are more parts and stop_at has passed.
// It does not stop if the row would break the limits with these parts alone (V3).
bool take_parts(const EscrowColumn& column, int64 counter, AmountSum* sum,
                TimestampTz stop_at = DT_NOEND, const EscrowLimits* limits = nullptr);

// Deletes the parts of a counter whose table is gone, and then the counter. Returns false as above.
bool forget_counter(int64 counter, TimestampTz stop_at);

// Adds the parts that the active snapshot sees.
void add_parts(const EscrowColumn& column, int64 counter, AmountSum* sum);

// The sums of parts and reservations for a load (E6): of those that are committed, and the parts of
// transactions in progress, also of this transaction. To be called under the lock of the row.
struct UndecidedParts {
    AmountSum committed;
    int committed_count;
    AmountSum reserved;
    InDoubt* in_doubt;
    int count;
};
UndecidedParts read_undecided(const EscrowColumn& column, int64 counter);

Range range_of(int64 row, const UndecidedParts& parts);

// A transaction of another session whose end can make the change fit. InvalidTransactionId if there
// is none.
TransactionId deciding_transaction(const EscrowColumn& column, int64 counter, int64 delta);

} // namespace interlock::escrow

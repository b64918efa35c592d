// Finds a row by its key without a statement.
#pragma once

#include "table/key.h"
#include "table/relation.h"

namespace interlock::inline execution {

struct KeyedRow {
    Relation rel;
    const TableInfo* info;
    const Key* key;
    CountedKind counted_as = CountedKind::kNone; // where a wait for the row is counted
};

// kDeclined: nothing was done, and the caller runs the statement. kSuppressed: the row was found,
// and a trigger or check prevented the write.
enum class DirectOutcome : uint8 { kDeclined, kNoRow, kSuppressed, kDone };

// Called with a version of a row, to make a decision about it or to return it.
struct RowCallback {
    bool (*call)(void* closure, TupleTableSlot* version);
    void* closure;
};

// The key's index. Null if its collation differs from that of the columns, because it then does not
// decide which keys are equal. Raises 55000 if the index is gone: code in the call that converts or
// checks a value can drop it.
Relation open_key_index(const UniqueKey& key, LOCKMODE mode);

// Puts the row into the slot as the active snapshot sees it. Returns false if there is none.
bool probe_key(const KeyedRow& row, Relation index, TupleTableSlot* slot);

// The same for many rows of a table, all named by the key of the index. Each look-up uses the
// snapshot that is active at that time. index_endscan() ends the probes.
IndexScanDesc begin_probes(Relation rel, Relation index);
bool probe_next(const KeyedRow& row, IndexScanDesc scan, TupleTableSlot* slot);

// Puts a version into the slot that another transaction has written and not committed. Returns
// false if there is none. That version may never be committed.
bool probe_uncommitted(const KeyedRow& row, Relation index, TupleTableSlot* slot);

// Whether the version of the row has the values of the key.
bool has_key(const KeyedRow& row, HeapTuple version);

inline HeapTuple row_in(TupleTableSlot* slot) {
    return ExecFetchSlotHeapTuple(slot, false, nullptr);
}

} // namespace interlock::inline execution

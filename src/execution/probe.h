// Finding a row by its key without a statement.
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
// and a trigger or check kept it from being written.
enum class DirectOutcome : uint8 { kDeclined, kNoRow, kSuppressed, kDone };

// Called with a version of a row, to decide about it or to report it.
struct RowCallback {
    bool (*call)(void* closure, TupleTableSlot* version);
    void* closure;
};

// The key's index, null when its collation differs from the columns': then it does not decide which
// keys are equal. Raises 55000 when it is gone: code that converts or checks a value in the call
// can drop it.
Relation open_key_index(const UniqueKey& key, LOCKMODE mode);

// Puts the row as the active snapshot sees it into the slot; false when there is none.
bool probe_key(const KeyedRow& row, Relation index, TupleTableSlot* slot);

// The same for many rows of a table that are named by the key of the index, each as the snapshot
// sees it that is active at its look-up. index_endscan ends them.
IndexScanDesc begin_probes(Relation rel, Relation index);
bool probe_next(const KeyedRow& row, IndexScanDesc scan, TupleTableSlot* slot);

// Puts the version that another transaction has written and not committed into the slot; false when
// there is none. It may never be committed.
bool probe_uncommitted(const KeyedRow& row, Relation index, TupleTableSlot* slot);

// Whether a version of the row has the values that name it.
bool has_key(const KeyedRow& row, HeapTuple version);

inline HeapTuple row_in(TupleTableSlot* slot) {
    return ExecFetchSlotHeapTuple(slot, false, nullptr);
}

} // namespace interlock::inline execution

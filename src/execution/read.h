// Reading or locking one row by its key, described as data:
//
//     SELECT ... FROM ONLY table WHERE key = ... [FOR ...]
//
// It runs without a statement if it is eligible (execution/eligible.h): then it does what the
// server's executor would do. Otherwise it runs as that statement.
#pragma once

#include "execution/probe.h"
#include "execution/row_lock.h"
#include "table/plan.h"
#include "table/row.h"

namespace interlock::inline execution {

struct RowRead {
    KeyedRow row;
    PlanKind kind; // the statement's text depends on kind, columns and lock only
    const AttrNumber* columns;
    int count;
    RowLock lock = {};
    bool by_index = false;       // PlanShape::by_index
    bool* is_busy = nullptr;     // gets StoredRow::is_busy
    ItemPointer place = nullptr; // gets the place of the row, if it is read without a statement
};

// Whether there is such a row. `values` gets the columns in the current context, as a fresh
// snapshot sees them, or from the newest version after locking it.
bool read_row(const RowRead& read, NullableDatum* values);

// --- Without a statement ----------------------------------------------------------------------

// What several reads of rows of one table by the same key share.
struct DirectReads {
    Relation rel;
    const TableInfo* info;
    const UniqueKey* by;
    RowLock lock;
    Relation index;
    IndexScanDesc scan;
    TupleTableSlot* slot;
};

// Returns false if the case is not eligible. Then nothing was done.
bool begin_direct_reads(DirectReads* reads, Relation rel, const TableInfo* info,
                        const UniqueKey* by, RowLock lock);

// Whether there is such a row. Calls visit(row) with the row as a fresh snapshot sees it, or with
// the newest version after locking it. The row is valid until visit() returns.
bool read_next_directly(const DirectReads& reads, const Key& key, RowCallback visit);

void end_direct_reads(const DirectReads& reads);

template <typename Visit>
bool read_next_directly(const DirectReads& reads, const Key& key, Visit&& visit) {
    auto tell = [](void* closure, TupleTableSlot* version) {
        (*static_cast<std::remove_reference_t<Visit>*>(closure))(version);
        return true;
    };
    return read_next_directly(reads, key, RowCallback{tell, &visit});
}

// The same for a single row.
template <typename Visit>
DirectOutcome read_directly(const KeyedRow& row, RowLock lock, Visit&& visit) {
    DirectReads reads;
    if (!begin_direct_reads(&reads, row.rel, row.info, row.key->by, lock))
        return DirectOutcome::kDeclined;
    bool found = read_next_directly(reads, *row.key, visit);
    end_direct_reads(reads);
    return found ? DirectOutcome::kDone : DirectOutcome::kNoRow;
}

} // namespace interlock::inline execution

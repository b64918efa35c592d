// The marked rows of a table that the transaction sees, read without a statement.
//
// It is for callers that have not named the table: no code of its owner runs. The rows come from
// the table itself, or from the index that enable_marker creates, which contains the marked rows.
// Planning a statement would evaluate constant parts of the expressions and predicates of all
// indexes.
#pragma once

#include "marker/marker.h"

namespace interlock::marker {

struct MarkedScan {
    const Marker* marker;
    Snapshot snapshot;
    Relation index; // null: the table is read
    IndexScanDesc by_index;
    TableScanDesc by_table;
    TupleTableSlot* row;
};

// Whether the index has exactly the rows whose status is 1: WHERE status = 1.
bool is_of_marked_rows(HeapTuple index, AttrNumber status);

// Whether enable_marker has created the index, by its name. Both functions take a row of pg_index.
bool is_sweep_index(HeapTuple index);
constexpr const char* kSweepIndexSuffix = "interlock_sweep_idx";

// The caller has locked the table and its indexes (server/relation_lock.h).
MarkedScan begin_marked_scan(Relation rel, const Marker* marker);

// Puts the next marked row into scan->row. Returns false at the end.
bool next_marked(MarkedScan* scan);
void end_marked_scan(MarkedScan* scan);

} // namespace interlock::marker

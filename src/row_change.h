// What this library's BEFORE UPDATE triggers make of an update of one row: for the triggers, and
// for a verb that writes the row itself and then need not go through the server's trigger manager.
// They look at nothing but the row, who writes and the clock, and change nothing: they can be asked
// again.
#pragma once

#include "relation.h"

namespace interlock {

struct VerbCall;

struct RowChange {
    Relation rel;
    const RelationFacts* facts;
    HeapTuple old_row;
    HeapTuple new_row;
    const Bitmapset* assigned; // the columns that SET names, by tg_updatedcols' numbers
    const VerbCall* verb;      // the verb on the marker whose write it is; null for any other
};

// Each returns the row to write, null to leave it alone.
HeapTuple judge_marker(const RowChange& change);
HeapTuple judge_transitions(const RowChange& change);
HeapTuple judge_version(const RowChange& change);

// All that fire in this session, for a table with RelationFacts::judged.
HeapTuple judge(RowChange change);

} // namespace interlock

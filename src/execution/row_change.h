// What this library's BEFORE UPDATE triggers make of an update of one row: for the triggers, and
// for a verb that writes the row itself and then need not go through the server's trigger manager.
// They look at nothing but the row, who writes and the clock, and change nothing: they can be asked
// again.
#pragma once

#include "table/relation.h"
#include "table/row.h"

namespace interlock {

struct VerbCall;

struct RowChange {
    Relation rel;
    const RelationFacts* facts;
    TupleTableSlot* old_row;
    TupleTableSlot* new_row;
    const Bitmapset* assigned; // the columns that SET names, by tg_updatedcols' numbers
    const VerbCall* verb;      // the verb on the marker whose write it is; null for any other
    bool changed = false;      // a judge has put another value into the new row
};

// Each puts what it decides into the columns of the new row, whose tuple, if it has one, is no
// longer its own then. Returns false when the row is to be left alone.
bool judge_marker(RowChange* change);
void judge_transitions(const RowChange& change);
void judge_version(RowChange* change);

// All that fire in this session, for a table with RelationFacts::judged.
bool judge(RowChange* change);

// For the judges.
void put(RowChange* change, AttrNumber attnum, NullableDatum value);

// What a trigger is told of an UPDATE, and what it returns for the new row once that is judged.
RowChange change_of(const TriggerData* trigger, const RelationFacts* facts);
HeapTuple tuple_to_write(const RowChange& change, HeapTuple given);

} // namespace interlock

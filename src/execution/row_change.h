// What this library's BEFORE UPDATE triggers decide about an update of one row. The triggers call
// it, and so does a function that writes the row without the server's trigger manager. The checks
// read only the row, the writer's name and the clock, and change nothing. So they can be called
// twice for the same row.
#pragma once

#include "table/relation.h"
#include "table/row.h"

namespace interlock::inline execution {

// The SQL function that is writing a row. A concept's check compares `run` with its own function,
// and so recognizes the functions of its concept. The concept derives its own type from this one.
struct WritingFunction {
    // Runs body(closure), which writes the row, so that the concept's triggers know this function
    // too.
    void (*run)(const WritingFunction& function, void (*body)(void* closure), void* closure);
};

template <typename Body>
void run_as(const WritingFunction& function, Body&& body) {
    auto call = [](void* closure) { (*static_cast<std::remove_reference_t<Body>*>(closure))(); };
    function.run(function, call, &body);
}

struct RowChange {
    Relation rel;
    const TableInfo* info;
    TupleTableSlot* old_row;
    TupleTableSlot* new_row;
    const Bitmapset* assigned;       // the columns that SET names, numbered as in tg_updatedcols
    const WritingFunction* function; // the function whose own write it is; null for any other write
    bool changed = false;            // a check has put another value into the new row
};

// Calls all checks that fire in this session (TableFacet::check in table/facet.h), for a table with
// TableInfo::only_row_checks. Returns false if the row must not be written.
bool decide(RowChange* change);

// Used by the checks: puts a value into a column of the new row. If the new row has a tuple, the
// tuple no longer belongs to it afterwards.
void put(RowChange* change, AttrNumber attnum, NullableDatum value);

// The change for which a trigger was called, and the tuple that the trigger returns after the
// check.
RowChange change_of(const TriggerData* trigger, const TableInfo* info);
HeapTuple tuple_to_write(const RowChange& change, HeapTuple given);

} // namespace interlock::inline execution

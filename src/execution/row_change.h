// What this library's BEFORE UPDATE triggers decide about an update of one row: for the triggers,
// and for a verb that writes the row without the server's trigger manager. They read only the row,
// the writer's name and the clock, and change nothing: a second call for the same row is safe.
#pragma once

#include "table/relation.h"
#include "table/row.h"

namespace interlock::inline execution {

// A concept's verb while it writes a row, for the concept's own check, which recognizes its verbs
// by `run`. The concept derives its own type from it.
struct WritingVerb {
    // Runs body(closure), which writes the row, such that the concept's triggers know it too.
    void (*run)(const WritingVerb& verb, void (*body)(void* closure), void* closure);
};

template <typename Body>
void run_as(const WritingVerb& verb, Body&& body) {
    auto call = [](void* closure) { (*static_cast<std::remove_reference_t<Body>*>(closure))(); };
    verb.run(verb, call, &body);
}

struct RowChange {
    Relation rel;
    const TableInfo* info;
    TupleTableSlot* old_row;
    TupleTableSlot* new_row;
    const Bitmapset* assigned; // the columns that SET names, by tg_updatedcols' numbers
    const WritingVerb* verb;   // whose own write it is; null for any other
    bool changed = false;      // a check has put another value into the new row
};

// Asks all checks that fire in this session (TablePart::check in table/part.h), for a table with
// TableInfo::only_row_checks. Returns false when the row must not be written.
bool decide(RowChange* change);

// For the checks: puts what one decides into a column of the new row, whose tuple, if it has one,
// is no longer its own then.
void put(RowChange* change, AttrNumber attnum, NullableDatum value);

// The change that a trigger was called for, and the tuple that it returns once the change is
// checked.
RowChange change_of(const TriggerData* trigger, const TableInfo* info);
HeapTuple tuple_to_write(const RowChange& change, HeapTuple given);

} // namespace interlock::inline execution

// Reads history with the caller's own privileges on the history table and under its policies.
#pragma once

#include "history/history.h"
#include "server/arguments.h"

namespace interlock::history {

// A table and its history. For a partition, its parent and the parent's history.
struct HistoryRead {
    Relation rel;
    const TableInfo* info;
    const History* history;
};

// Raises the errors of open_table(). Raises 55000 if there is no history that can be read, and
// 42501 if the caller may not SELECT from it.
HistoryRead open_history(Oid relid, LOCKMODE mode);

// The table and the key that a call asks for.
struct Question : HistoryRead {
    Key key;
    Datum entry_key; // the key as the entries of the history have it
};

// Reads arguments 0 and 1. Raises P0002 for a key of another unique index if there is no such row.
Question read_question(const Arguments& arguments, LOCKMODE mode);

// The row at that time, as jsonb. Null if there was no row at that time, or if the history does not
// reach back to that time.
NullableDatum state_at(const Question& question, TimestampTz at);

} // namespace interlock::history

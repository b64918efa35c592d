// Reading history, with the caller's own privileges on the history table and under its policies.
#pragma once

#include "history/history.h"
#include "server/arguments.h"

namespace interlock::history {

// A table and its history: for a partition those of its parent.
struct HistoryRead {
    Relation rel;
    const TableInfo* info;
    const History* history;
};

// Raises what open_table() does, 55000 when there is no history that can be read, and 42501 when
// the caller may not SELECT of it.
HistoryRead open_history(Oid relid, LOCKMODE mode);

// The table, and the key in question.
struct Question : HistoryRead {
    Key key;
    Datum entry_key;
};

// Arguments 0 and 1. Raises P0002 for a key of another index when the row is not there.
Question read_question(const Arguments& arguments, LOCKMODE mode);

// The row as jsonb as it was at that time; null: there was none, or it is not known.
NullableDatum state_at(const Question& question, TimestampTz at);

} // namespace interlock::history

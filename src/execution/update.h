// The UPDATE of one row by its key without a statement: a probe of the key's index and the calls
// that the server's executor would make for
//
//     UPDATE ONLY table SET ... WHERE key = ... AND condition RETURNING ...
//
// with the same waits, triggers, checks and errors, at less than half its cost. What is not
// eligible (execution/eligible.h) is declined before anything is done, and the caller runs the
// statement. What the server learns of statements alone differs: pg_stat_statements and
// auto_explain see the caller's statement and not this one, and errors have no line of CONTEXT with
// its text, hooks of other modules that look at statements do not see it, and indexes that the
// update does not change are not locked.
//
// Where an update runs no code before it is done but our own triggers and what merely computes
// (TableInfo::only_row_checks), these are asked directly (execution/row_change.h), and a row that
// nobody has locked is written without locking it first. The version that the snapshot shows is the
// newest then, and what it says is judged at that moment: if it has changed before it is written,
// all of it is done again with the lock. One who locks the row in between and does not change it is
// waited for, and nothing is judged again; what depends on the clock is the caller's to look at
// afterwards.
#pragma once

#include "execution/probe.h"
#include "execution/row_change.h"
#include "table/row.h"

namespace interlock {

struct RowUpdate {
    KeyedRow row;
    // Its columns are those that SET names; those without a value keep theirs.
    Changes changes = {};
    const WritingVerb* verb = nullptr; // for decide(), and for what code of others asks
    bool lock_first = false;           // judge nothing before the row is locked
    Changes computed = {};             // more values, which condition(row) may fill in
};

// What stays open from one row to the next: for many updates of one table inside one function
// call. Lives in `memory`, which must outlive them; close_updates in the end.
struct Execution;
struct OpenUpdates {
    MemoryContext memory;
    Execution* execution = nullptr;
};
void close_updates(OpenUpdates* open);

DirectOutcome update_directly(const RowUpdate& update, RowCallback condition, RowCallback returning,
                              OpenUpdates* open = nullptr);

// As above with condition(row), which may be asked twice, and returning(row). The row that it is
// asked of last is the one that is changed: it may fill in values that depend on it.
template <typename Condition, typename Returning>
DirectOutcome update_directly(const RowUpdate& update, Condition&& condition, Returning&& returning,
                              OpenUpdates* open = nullptr) {
    auto ask = [](void* closure, TupleTableSlot* row) {
        return (*static_cast<std::remove_reference_t<Condition>*>(closure))(row);
    };
    auto tell = [](void* closure, TupleTableSlot* row) {
        (*static_cast<std::remove_reference_t<Returning>*>(closure))(row);
        return true;
    };
    return update_directly(update, RowCallback{ask, &condition}, RowCallback{tell, &returning},
                           open);
}

// Whether our own triggers are asked directly, and the row, unless lock_first, may be written
// without locking it first. A table that has changed since it was looked at is judged by its
// triggers.
inline bool has_only_row_checks(const TableInfo* info) {
    return info->valid && info->only_row_checks;
}

} // namespace interlock

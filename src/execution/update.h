// The UPDATE of one row by its key without a statement: a probe of the key's index and the calls
// that the server's executor would make for
//
//     UPDATE ONLY table SET ... WHERE key = ... AND condition RETURNING ...
//
// with the same waits, triggers, checks and errors, at less than half its cost. A write that is
// not eligible (execution/eligible.h) is declined before anything is done, and the caller runs the
// statement. Modules that watch statements (pg_stat_statements, auto_explain, hooks) see the
// caller's statement only. Errors have no line of CONTEXT with the text of this one. Indexes that
// the update does not change are not locked.
//
// Where an update runs no code before the write but our own triggers and immutable functions
// (TableInfo::only_row_checks), the row checks are called directly (execution/row_change.h), and a
// row that is not locked is written without locking it first. The snapshot then shows the newest
// version, and the checks decide on that one. If it has changed before the write, everything is
// done again with the lock. If another transaction locks the row in between and does not change it,
// the write waits for it and checks nothing again: the caller checks what depends on the clock
// afterwards.
#pragma once

#include "execution/probe.h"
#include "execution/row_change.h"
#include "table/row.h"

namespace interlock::inline execution {

struct RowUpdate {
    KeyedRow row;
    // Its columns are those that SET names; those without a value keep theirs.
    Changes changes = {};
    const WritingVerb* verb = nullptr; // for decide(), and for what code of others asks
    bool lock_first = false;           // check nothing before the row is locked
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

// As above with condition(row), which may be called twice, and returning(row). The last row that it
// is called with is the one that is changed: it may fill in values that depend on it.
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

// Whether the row checks are called directly, and the row, unless lock_first, may be written
// without locking it first. If the table has changed since its metadata was read, its triggers
// fire.
inline bool has_only_row_checks(const TableInfo* info) {
    return info->valid && info->only_row_checks;
}

} // namespace interlock::inline execution

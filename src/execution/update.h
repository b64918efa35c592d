// The UPDATE of one row by its key without a statement. It looks the key up in its index, and then
// makes the calls that the server's executor would make for
//
//     UPDATE ONLY table SET ... WHERE key = ... AND condition RETURNING ...
//
// The waits, triggers, checks and errors are the same, at less than half the cost. A write that is
// not eligible (execution/eligible.h) is declined before anything is done, and the caller runs the
// statement. Differences: modules that watch statements (pg_stat_statements, auto_explain, hooks)
// see only the caller's statement. Errors have no line of CONTEXT with the text of this statement.
// Indexes that the update does not change are not locked.
//
// For some tables, the only code that runs before the write is the extension's own triggers and
// immutable functions (TableInfo::only_row_checks). There the row checks are called directly
// (execution/row_change.h), and a row that is not locked is written without locking it first. The
// snapshot then shows the newest version, and the checks decide about that version. If it has
// changed before the write, everything is done again with the lock. If another transaction holds
// a lock on the row and ends without changing it, the write waits and does not repeat the checks.
// The caller must then repeat the checks that depend on the clock.
#pragma once

#include "execution/probe.h"
#include "execution/row_change.h"
#include "table/row.h"

namespace interlock::inline execution {

struct RowUpdate {
    KeyedRow row;
    // The columns that SET names. A column without a value keeps its value.
    Changes changes = {};
    const WritingFunction* function =
        nullptr;             // the function that writes, for decide() and other code
    bool lock_first = false; // check nothing before the row is locked
    Changes computed = {};   // more values, which condition(row) may fill in
};

// What stays open from one row to the next, for many updates of one table in one function call. It
// lives in `memory`, which must live longer. close_updates() ends it.
struct Execution;
struct OpenUpdates {
    MemoryContext memory;
    Execution* execution = nullptr;
};
void close_updates(OpenUpdates* open);

DirectOutcome update_directly(const RowUpdate& update, RowCallback condition, RowCallback returning,
                              OpenUpdates* open = nullptr);

// As above with condition(row) and returning(row). condition() may be called twice. The row of its
// last call is the row that is changed, so it may fill in values that depend on the row.
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

// Whether the row checks are called directly. Then the row may also be written without locking it
// first, unless lock_first is set. If the table has changed since its metadata was read, its
// triggers fire instead.
inline bool has_only_row_checks(const TableInfo* info) {
    return info->valid && info->only_row_checks;
}

} // namespace interlock::inline execution

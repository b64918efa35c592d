// The UPDATE or DELETE of one row as data (execution/write.h).
//
// A write runs by a prepared statement, or without a statement: by the calls that the executor of
// the server would make for that statement (execution/update.h, execution/insert.h).
//
//     speed of versioned_update, with an UPDATE in plain SQL as 1 (measured in pairs)
//         without a statement                                               1.1
//         by a statement, with interlock.direct_execution = off             0.8
//
//     what direct execution costs
//         about 2,000 lines of this folder
//         one rule for each case in which it is not used (execution/eligible.h)
//         tests of both ways (test/sql/direct_*.sql), which must give the same rows and errors
//
// Without direct execution versioned_update would be slower than plain SQL. A DELETE always runs by
// a statement: no figure asks for more.
#pragma once

#include "execution/expression.h"
#include "execution/probe.h"
#include "execution/row_change.h"
#include "table/row.h"

namespace interlock::inline execution {

enum class RowAction : uint8 { kUpdate, kDelete };

// An assignment of SET. Without a value, SET names the column and the column keeps its value.
struct Assignment {
    AttrNumber column;
    const Expression* value;
};

// Lives on the stack of the function that creates it. The expressions point into it, so it must not
// be copied or returned.
struct RowWrite {
    // `kind`, `variant` and the columns that SET names are all that the statement's text depends
    // on. The plan is found by them (table/plan.h).
    RowWrite(const KeyedRow& keyed_row, PlanKind plan_kind, RowAction what = RowAction::kUpdate)
        : row(keyed_row), kind(plan_kind), action(what), terms(keyed_row.info) {}
    RowWrite(const RowWrite&) = delete;
    RowWrite& operator=(const RowWrite&) = delete;

    // The changes that the caller of the SQL function passed, in the columns' own types. To be
    // called at most once, and before the assignments of the function itself.
    void set(const Changes& given);
    void set(AttrNumber column, const Expression* value);
    void keep(AttrNumber column);
    // Adds a condition. All conditions must be met.
    void require(const Expression* condition) {
        if (condition_count == kMostConditions)
            elog(ERROR, "a write has too many conditions");
        conditions[condition_count++] = condition;
    }
    // Adds a column to be returned from the row as it was stored.
    void returns(AttrNumber column);

    static constexpr int kMostAssignments = 20;
    static constexpr int kMostConditions = 8;
    static constexpr int kMostReturned = 4;

    KeyedRow row;
    PlanKind kind;
    AttrNumber variant = 0; // PlanShape::subject
    bool by_index = false;  // PlanShape::by_index
    RowAction action;
    // The function whose write it is. decide() passes it to the checks, and other triggers that
    // check the row find it too.
    const WritingFunction* function = nullptr;
    // Set by write_row(): a trigger or check prevented the write. Another attempt would run its
    // code again. A write by a statement sets it only if no row changes meanwhile (REPEATABLE READ
    // and above).
    mutable bool was_suppressed = false;
    // Writes nothing if the row has the values of `changes` already, compared by their bytes. A
    // statement does so only if the caller may SELECT these columns. The row is not locked then.
    bool skips_unchanged = false;
    // Set by a write without a statement: the row meets the conditions and was skipped.
    mutable bool was_unchanged = false;
    // Checks conditions only after the row is locked. It is needed for a condition on the clock,
    // which may become false during a wait.
    bool lock_first = false;

    Expressions terms;
    const Changes* changes = nullptr;
    Bitmapset* columns = nullptr; // the columns that SET names
    int assignment_count = 0;
    int condition_count = 0;
    int returned_count = 0;
    Assignment assignments[kMostAssignments];
    const Expression* conditions[kMostConditions];
    AttrNumber returned[kMostReturned];
};

static_assert(std::is_trivially_destructible_v<RowWrite>);

} // namespace interlock::inline execution

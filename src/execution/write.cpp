#include "execution/write.h"

#include "execution/eligible.h"
#include "execution/returned.h"
#include "execution/update.h"
#include "server/scope.h"

namespace interlock::inline execution {

// --- As a statement ---------------------------------------------------------------------------

constexpr AttrNumber kComparing = -1; // PlanShape::subject; no variant

static void add_set(Statement* statement, const RowWrite& write) {
    const TableInfo* info = write.row.info;
    const char* separator = "";
    if (write.changes != nullptr && write.changes->count > 0) {
        add_assignments(statement, info, write.changes->columns);
        separator = ", ";
    }
    for (int i = 0; i < write.assignment_count; i++) {
        const Assignment& assignment = write.assignments[i];
        const char* column = quote_identifier(column_name(info, assignment.column));
        statement->add("%s%s = ", separator, column);
        if (assignment.value != nullptr)
            add_expression(statement, info, *assignment.value);
        else
            statement->add("t.%s", column);
        separator = ", ";
    }
}

// The parameters are those of add_set().
static void add_difference(Statement* statement, const RowWrite& write) {
    const Bitmapset* columns = write.changes->columns;
    const char* separator = "";
    statement->add(" AND ROW(");
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;) {
        statement->add("%st.%s", separator, quote_identifier(column_name(write.row.info, column)));
        separator = ", ";
    }
    statement->add(")::pg_catalog.record OPERATOR(pg_catalog.*<>) ROW(");
    for (int i = 1; i <= write.changes->count; i++)
        statement->add("%s$%d", i > 1 ? ", " : "", i);
    statement->add(")::pg_catalog.record");
}

static void say(Statement* statement, const RowWrite& write, bool compares) {
    const TableInfo* info = write.row.info;
    const char* table = target_of(write.row.rel, info);
    if (write.action == RowAction::kDelete) {
        statement->add("DELETE FROM %s AS t", table);
    } else {
        statement->add("UPDATE %s AS t SET ", table);
        add_set(statement, write);
    }
    statement->add(" WHERE ");
    add_key_condition(statement, info, *write.row.key);
    for (int i = 0; i < write.condition_count; i++) {
        statement->add(" AND ");
        add_expression(statement, info, *write.conditions[i]);
    }
    if (compares)
        add_difference(statement, write);
    add_returned(statement, " RETURNING ", info, write.returned, write.returned_count);
}

// In the order in which say() makes parameters of them.
static Parameters values_of(const RowWrite& write) {
    int given = write.changes != nullptr ? write.changes->count : 0;
    Parameters parameters(given + write.row.key->by->count + write.terms.count());
    if (write.changes != nullptr)
        add_changes(&parameters, *write.changes);
    for (int i = 0; i < write.assignment_count; i++)
        if (write.assignments[i].value != nullptr)
            add_values(&parameters, *write.assignments[i].value);
    add_key(&parameters, *write.row.key);
    for (int i = 0; i < write.condition_count; i++)
        add_values(&parameters, *write.conditions[i]);
    return parameters;
}

static bool may_compare_changes(const RowWrite& write) {
    return write.skips_unchanged &&
           bms_is_subset(write.changes->columns, readable_columns(write.row.rel));
}

static bool run_statement(const RowWrite& write, NullableDatum* returned) {
    bool written = false;
    bool compares = may_compare_changes(write);
    MemoryContext caller = CurrentMemoryContext;
    with_spi([&] {
        PlanShape shape = {
            RelationGetRelid(write.row.rel),       write.kind,     write.columns,
            compares ? kComparing : write.variant, write.by_index, write.row.key->by->index};
        TablePlan plan =
            plan_of(shape, [&](Statement* statement) { say(statement, write, compares); });
        count_errors(line_of(write.row.info, write.row.counted_as),
                     [&] { written = run_plan(plan, values_of(write)) > 0; });
        if (written)
            in_context(caller, [&] {
                copy_result(write.row.info, write.returned, write.returned_count, returned);
                return 0;
            });
    });
    return written;
}

static bool write_by_statement(const RowWrite& write, NullableDatum* returned) {
    if (write.function == nullptr)
        return run_statement(write, returned);
    bool written = false;
    run_as(*write.function, [&] { written = run_statement(write, returned); });
    return written;
}

// --- Without a statement ----------------------------------------------------------------------

namespace {

// What compute() fills in.
struct Computed {
    AttrNumber attnums[RowWrite::kMostAssignments];
    Datum values[RowWrite::kMostAssignments];
    bool nulls[RowWrite::kMostAssignments];
};

} // namespace

static RowUpdate update_of(const RowWrite& write, Computed* computed) {
    RowUpdate update;
    update.row = write.row;
    if (write.changes != nullptr)
        update.changes = *write.changes;
    update.changes.columns = write.columns;
    update.computed = {0, nullptr, computed->attnums, computed->values, computed->nulls};
    update.function = write.function;
    update.lock_first = write.lock_first;
    return update;
}

// Whether the value may point into the row, which is released where the row must be locked, before
// the new one is formed.
static bool is_part_of_row(const Expression& expression) {
    return expression.term != Term::kValue && expression.term != Term::kLiteral;
}

static NullableDatum value_to_assign(Form_pg_attribute column, const Expression& expression,
                                     TupleTableSlot* row) {
    NullableDatum value = assigned_value(column, expression, row);
    return is_part_of_row(expression) ? copy_of(column, value) : value;
}

// The assigned values, computed from the row that is about to be replaced. The executor's plan
// computes it where it has found the row or found it again (ExecUpdate's EvalPlanQual), so it is
// not done before.
static void compute(const RowWrite& write, TupleTableSlot* row, Changes* computed) {
    int next = 0;
    for (int i = 0; i < write.assignment_count; i++) {
        const Assignment& assignment = write.assignments[i];
        if (assignment.value == nullptr)
            continue;
        Form_pg_attribute column = TupleDescAttr(row->tts_tupleDescriptor, assignment.column - 1);
        NullableDatum value = value_to_assign(column, *assignment.value, row);
        computed->attnums[next] = assignment.column;
        computed->values[next] = value.value;
        computed->nulls[next++] = value.isnull;
    }
    computed->count = next;
}

// As ExecQual: the planner makes a list of what AND joins (make_ands_implicit), and the first of
// them that is not true ends it.
static bool meets_all(const RowWrite& write, TupleTableSlot* row) {
    for (int i = 0; i < write.condition_count; i++)
        if (!is_met(*write.conditions[i], row))
            return false;
    return true;
}

static bool has_changes(TupleTableSlot* row, const Changes& changes) {
    RowValues stored = values_in(row);
    return has_values(row->tts_tupleDescriptor, changes,
                      [&](AttrNumber column) { return stored[column]; });
}

// For a row that is written without locking it first, the conditions were checked before a possible
// wait. The row has not changed since, but the clock has moved on.
static bool still_meets_all(const RowWrite& write, TupleTableSlot* row) {
    if (write.lock_first)
        return true;
    for (int i = 0; i < write.condition_count; i++)
        if (write.conditions[i]->asks_clock && !is_met(*write.conditions[i], row))
            return false;
    return true;
}

static DirectOutcome write_without_statement(const RowWrite& write, NullableDatum* returned,
                                             OpenUpdates* open) {
    if (!is_said_without_statement(write))
        return DirectOutcome::kDeclined;
    Computed computed;
    RowUpdate update = update_of(write, &computed);
    TupleTableSlot* old_row = nullptr;
    bool expired = false;
    DirectOutcome outcome = update_directly(
        update,
        [&](TupleTableSlot* row) {
            old_row = row;
            slot_getallattrs(row); // the new row needs them all
            if (!meets_all(write, row))
                return false;
            write.was_unchanged = write.skips_unchanged && has_changes(row, *write.changes);
            if (write.was_unchanged)
                return false;
            compute(write, row, &update.computed);
            return true;
        },
        [&](TupleTableSlot* row) {
            expired = !still_meets_all(write, old_row);
            copy_columns(row, write.returned, write.returned_count, returned);
        },
        open);
    return expired ? DirectOutcome::kNoRow : outcome;
}

bool write_row(const RowWrite& write, NullableDatum* returned, OpenUpdates* open) {
    DirectOutcome outcome = write_without_statement(write, returned, open);
    if (outcome != DirectOutcome::kDeclined) {
        write.was_suppressed = outcome == DirectOutcome::kSuppressed;
        return outcome == DirectOutcome::kDone;
    }
    bool written = write_by_statement(write, returned);
    write.was_suppressed = !written && IsolationUsesXactSnapshot();
    return written;
}

bool may_write_unlocked(const RowWrite& write) {
    return !write.lock_first && has_only_row_checks(write.row.info);
}

} // namespace interlock::inline execution

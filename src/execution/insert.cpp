#include "execution/insert.h"

#include "execution/column_default.h"
#include "execution/eligible.h"
#include "execution/execution.h"
#include "execution/returned.h"
#include "server/scope.h"
#include "statement/running.h"

namespace interlock::inline execution {

// --- As a statement -----------------------------------------------------------

static void add_names(Statement* statement, const RowInsert& insert) {
    for (int i = 0; i < insert.count; i++)
        statement->add("%s%s", i == 0 ? "" : ", ",
                       quote_identifier(column_name(insert.info, insert.values[i].attnum)));
}

static void add_parameters(Statement* statement, const RowInsert& insert) {
    for (int i = 0; i < insert.count; i++)
        statement->add("%s$%d", i == 0 ? "" : ", ", statement->parameter(insert.values[i].type));
}

static void add_key(Statement* statement, const RowInsert& insert) {
    const UniqueKey& key = arbiter_of(insert);
    for (int i = 0; i < key.count; i++)
        statement->add("%s%s", i == 0 ? "" : ", ",
                       quote_identifier(column_name(insert.info, key.columns[i].attnum)));
}

static void say(Statement* statement, const RowInsert& insert) {
    statement->add("INSERT INTO %s AS t (", qualified_name(insert.rel));
    add_names(statement, insert);
    statement->add(") VALUES (");
    add_parameters(statement, insert);
    statement->add(") ON CONFLICT (");
    add_key(statement, insert);
    statement->add(") DO NOTHING");
    add_returned(statement, " RETURNING ", insert.info, insert.returned, insert.returned_count);
}

static bool insert_by_statement(const RowInsert& insert, Bitmapset* named,
                                NullableDatum* returned) {
    bool written = false;
    MemoryContext caller = CurrentMemoryContext;
    with_spi([&] {
        PlanShape shape = {RelationGetRelid(insert.rel), insert.kind, named, 0, insert.by_index,
                           arbiter_of(insert).index};
        TablePlan plan = plan_of(shape, [&](Statement* statement) { say(statement, insert); });
        Parameters parameters(insert.count);
        for (int i = 0; i < insert.count; i++)
            parameters.add(insert.values[i].value, insert.values[i].is_null);
        written = run_plan(plan, parameters) > 0;
        if (written)
            in_context(caller, [&] {
                copy_result(insert.info, insert.returned, insert.returned_count, returned);
                return 0;
            });
    });
    return written;
}

// --- Without a statement ------------------------------------------------------

namespace {

struct Insertion {
    const RowInsert* insert;
    MemoryContext caller;
    EState* estate;
    ResultRelInfo* target;
    TupleTableSlot* row;
};

} // namespace

static Bitmapset* named_columns(const RowInsert& insert) {
    Bitmapset* columns = nullptr;
    for (int i = 0; i < insert.count; i++)
        columns = bms_add_member(columns, insert.values[i].attnum);
    return columns;
}

// --- Writing it -----------------------------------------------------------------

static void make_row(Insertion* insertion, const Bitmapset* named) {
    TupleTableSlot* row = insertion->row;
    fill_defaults(insertion->insert->info, named, row);
    for (int i = 0; i < insertion->insert->count; i++) {
        const NamedValue& value = insertion->insert->values[i];
        row->tts_values[value.attnum - 1] = value.value;
        row->tts_isnull[value.attnum - 1] = value.is_null;
    }
    ExecStoreVirtualTuple(row);
    ExecMaterializeSlot(row);
}

// A speculative insertion: visible to others as such; it is confirmed unless the index has the key
// by then.
static bool enter_speculatively(Insertion* insertion, List* arbiters, List** to_check_again) {
    Relation rel = insertion->insert->rel;
    EState* estate = insertion->estate;
    bool conflict = false;
    uint32 token = SpeculativeInsertionLockAcquire(GetCurrentTransactionId());
    table_tuple_insert_speculative(rel, insertion->row, estate->es_output_cid, 0, nullptr, token);
    *to_check_again =
        insert_index_entries(insertion->target, estate, insertion->row, arbiters, &conflict);
    table_tuple_complete_speculative(rel, insertion->row, token, !conflict);
    SpeculativeInsertionLockRelease(GetCurrentTransactionId());
    return !conflict;
}

// BEFORE triggers may have inserted the key, or given the row another one.
static bool runs_before_triggers(const Insertion* insertion) {
    const TriggerDesc* triggers = insertion->target->ri_TrigDesc;
    return triggers != nullptr && triggers->trig_insert_before_row;
}

// Returns false when the key is there. Waits for transactions that are inserting or deleting it.
// The executor looks before the first attempt, too, which is useless after the look of the caller.
static bool enter(Insertion* insertion, List** to_check_again) {
    List* arbiters = list_make1_oid(arbiter_of(*insertion->insert).index);
    for (bool looks = runs_before_triggers(insertion);; looks = true) {
        CHECK_FOR_INTERRUPTS();
        if (looks && has_conflict(insertion->target, insertion->estate, insertion->row, arbiters))
            return false;
        if (enter_speculatively(insertion, arbiters, to_check_again))
            return true;
    }
}

static bool write_row(Insertion* insertion) {
    EState* estate = insertion->estate;
    ResultRelInfo* target = insertion->target;
    TupleTableSlot* row = insertion->row;
    const TupleConstr* constraints = RelationGetDescr(insertion->insert->rel)->constr;
    ExecOpenIndices(target, true);
    if (runs_before_triggers(insertion) && !ExecBRInsertTriggers(estate, target, row)) {
        insertion->insert->was_suppressed = true;
        return false;
    }
    row->tts_tableOid = RelationGetRelid(insertion->insert->rel);
    if (constraints != nullptr && constraints->has_generated_stored)
        ExecComputeStoredGenerated(target, estate, row, CMD_INSERT);
    check_row(target, estate, row, insertion->insert->info);
    List* to_check_again = NIL;
    if (!enter(insertion, &to_check_again))
        return false;
    ExecARInsertTriggers(estate, target, row, to_check_again, nullptr);
    return true;
}

static bool execute(Insertion* insertion, const Bitmapset* named, NullableDatum* returned) {
    EState* estate = insertion->estate;
    Relation rel = insertion->insert->rel;
    insertion->target = open_target(estate, rel, offset_columns(named), nullptr);
    insertion->row = table_slot_create(rel, &estate->es_tupleTable);
    begin_query(estate);
    make_row(insertion, named);
    bool written = write_row(insertion);
    if (written)
        in_context(insertion->caller, [&] {
            copy_columns(insertion->row, insertion->insert->returned,
                         insertion->insert->returned_count, returned);
            return 0;
        });
    AfterTriggerEndQuery(estate);
    return written;
}

static bool insert_without_statement(const RowInsert& insert, const Bitmapset* named,
                                     NullableDatum* returned) {
    CommandCounterIncrement();
    PushActiveSnapshot(GetTransactionSnapshot());
    Insertion insertion = {&insert, CurrentMemoryContext, CreateExecutorState(), nullptr, nullptr};
    bool written = in_context(insertion.estate->es_query_cxt,
                              [&] { return execute(&insertion, named, returned); });
    free_state(insertion.estate);
    PopActiveSnapshot();
    CommandCounterIncrement();
    return written;
}

bool insert_row(const RowInsert& insert, NullableDatum* returned) {
    Bitmapset* named = named_columns(insert);
    if (may_insert_without_statement(insert, named))
        return insert_without_statement(insert, named, returned);
    Skipped skipped = {};
    bool written = false;
    with_current(&skipped_by_insert, &skipped,
                 [&] { written = insert_by_statement(insert, named, returned); });
    insert.was_suppressed = !written && skipped.is_known && skipped.rows == 0;
    return written;
}

} // namespace interlock::inline execution

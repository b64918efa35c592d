#include "execution/update.h"

#include "execution/eligible.h"
#include "execution/execution.h"
#include "execution/row_lock.h"
#include "server/scope.h"
#include "statement/running.h"

namespace interlock::inline execution {

// What the executor allocates for a statement, in the memory of its EState.
struct Execution {
    EState* estate;
    Relation index;
    const RowUpdate* update; // the present one; null between two
    Bitmapset* columns;      // that SET names, for the next update that shares this; and
    Bitmapset* assigned;     // the same as the server numbers them
    bool only_row_checks;    // TableInfo::only_row_checks
    bool has_dropped_columns;
    ResultRelInfo* target; // null before the first row that is to be written
    EPQState recheck;      // for the triggers; nothing is left to check again when they run
    TupleTableSlot* old_row;
    TupleTableSlot* new_row;
    ItemPointerData place; // of the old row
};

// --- Whose code runs --------------------------------------------------------------

static bool has_generated_columns(Relation rel) {
    const TupleConstr* constraints = RelationGetDescr(rel)->constr;
    return constraints != nullptr && constraints->has_generated_stored;
}

static bool has_dropped_columns(TupleDesc columns) {
    for (int i = 0; i < columns->natts; i++)
        if (TupleDescAttr(columns, i)->attisdropped)
            return true;
    return false;
}

// The columns that may change: those that are set, and those that decide() sets.
static Bitmapset* columns_at_stake(const RowUpdate& update) {
    return bms_union(update.changes.columns, update.row.info->maintained);
}

// The trigger of the referencing side only reads. That of the referenced side may write, and does
// nothing unless a column of some key changes.
static bool runs_only_key_checks(const RowUpdate& update) {
    Relation rel = update.row.rel;
    const TriggerDesc* triggers = rel->trigdesc;
    bool is_referenced = false;
    for (int i = 0; i < triggers->numtriggers; i++) {
        const Trigger* trigger = &triggers->triggers[i];
        if (!TRIGGER_TYPE_MATCHES(trigger->tgtype, TRIGGER_TYPE_ROW, TRIGGER_TYPE_AFTER,
                                  TRIGGER_TYPE_UPDATE))
            continue;
        int side = RI_FKey_trigger_type(trigger->tgfoid);
        if (side == RI_TRIGGER_NONE)
            return false;
        is_referenced = is_referenced || side == RI_TRIGGER_PK;
    }
    return !is_referenced || !bms_overlap(offset_columns(columns_at_stake(update)),
                                          RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_KEY));
}

// Whether no other code runs around the update either: no AFTER triggers but foreign keys that only
// read.
static bool runs_no_other_code(const RowUpdate& update) {
    const TriggerDesc* triggers = update.row.rel->trigdesc;
    return has_only_row_checks(update.row.info) &&
           (triggers == nullptr || !triggers->trig_update_after_row ||
            runs_only_key_checks(update));
}

// --- The executor's state -------------------------------------------------------

static Execution* open_execution(const RowUpdate& update, bool is_shared) {
    Relation index = open_key_index(*update.row.key->by, RowExclusiveLock);
    if (index == nullptr)
        return nullptr;
    CheckCmdReplicaIdentity(update.row.rel, CMD_UPDATE);
    EState* estate = CreateExecutorState();
    return in_context(estate->es_query_cxt, [&] {
        auto* execution = static_cast<Execution*>(palloc0(sizeof(Execution)));
        execution->estate = estate;
        execution->index = index;
        if (is_shared)
            execution->columns = bms_copy(update.changes.columns);
        execution->assigned = offset_columns(update.changes.columns);
        execution->only_row_checks = has_only_row_checks(update.row.info);
        execution->has_dropped_columns = has_dropped_columns(RelationGetDescr(update.row.rel));
        execution->old_row = table_slot_create(update.row.rel, &estate->es_tupleTable);
        return execution;
    });
}

static void close_execution(Execution* execution) {
    EState* estate = execution->estate;
    Relation index = execution->index;
    free_state(estate);
    index_close(index, NoLock);
}

// BEFORE triggers are replaced by direct calls of the row checks.
static bool fires_triggers(const Execution& execution) {
    const TriggerDesc* triggers = execution.update->row.rel->trigdesc;
    return !execution.only_row_checks || (triggers != nullptr && triggers->trig_update_after_row);
}

static void prepare_to_write(Execution* execution) {
    EState* estate = execution->estate;
    Relation rel = execution->update->row.rel;
    MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);
    execution->target =
        open_target(estate, rel, nullptr, execution->assigned, fires_triggers(*execution));
    if (!execution->only_row_checks)
        begin_recheck(&execution->recheck, estate);
    execution->new_row = table_slot_create(rel, &estate->es_tupleTable);
    MemoryContextSwitchTo(caller);
}

static void begin_row(Execution* execution) {
    EState* estate = execution->estate;
    if (execution->target == nullptr)
        prepare_to_write(execution);
    begin_query(estate);
}

// --- Locking the row -------------------------------------------------------------

[[noreturn]] static void refuse_modified_twice() {
    ereport(ERROR,
            (errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
             errmsg("tuple to be updated was already modified by an operation triggered by the "
                    "current command"),
             errhint("Consider using an AFTER trigger instead of a BEFORE trigger to propagate "
                     "changes to other rows.")));
}

// Locks the newest version of the row, after a wait if need be. A version that is newer than the
// snapshot must have the key and meet the condition again.
static bool lock_newest(Execution* execution, RowCallback condition) {
    const KeyedRow& row = execution->update->row;
    EState* estate = execution->estate;
    TM_FailureData failure;
    auto lock_at = [&](ItemPointerData place, LockWaitPolicy wait) {
        execution->place = place;
        return table_tuple_lock(row.rel, &execution->place, estate->es_snapshot, execution->old_row,
                                estate->es_output_cid,
                                ExecUpdateLockMode(estate, execution->target), wait,
                                TUPLE_LOCK_FLAG_FIND_LAST_VERSION, &failure);
    };
    TM_Result result =
        lock_counted(line_of(row.info, row.counted_as), LockWaitBlock, execution->old_row, lock_at);
    switch (result) {
    case TM_Ok:
        break;
    case TM_Deleted:
        return false;
    case TM_SelfModified:
        refuse_modified_twice();
    default:
        elog(ERROR, "unexpected table_tuple_lock status: %u", result);
    }
    if (!failure.traversed)
        return true;
    return has_key(row, row_in(execution->old_row)) &&
           condition.call(condition.closure, execution->old_row);
}

// True if the hint bits show that xmax is invalid. Otherwise the row is locked first, which finds
// out whether the transaction of xmax has ended.
static bool is_untouched(HeapTuple version) {
    return (version->t_data->t_infomask & HEAP_XMAX_INVALID) != 0;
}

// --- Writing it -----------------------------------------------------------------

namespace {

enum class Written : uint8 { kYes, kNoRow, kSuppressed, kOvertaken };

} // namespace

static void put_changes(TupleTableSlot* row, const Changes& changes) {
    for (int i = 0; i < changes.count; i++) {
        row->tts_values[changes.attnums[i] - 1] = changes.values[i];
        row->tts_isnull[changes.attnums[i] - 1] = changes.nulls[i];
    }
}

// As ExecGetUpdateNewTuple: columns that SET does not name keep their value, and dropped columns
// are null (ExecBuildUpdateProjection).
static void make_new_row(Execution* execution) {
    TupleTableSlot* old_row = execution->old_row;
    TupleTableSlot* new_row = execution->new_row;
    TupleDesc columns = RelationGetDescr(execution->update->row.rel);
    ExecClearTuple(new_row);
    slot_getallattrs(old_row);
    memcpy(new_row->tts_values, old_row->tts_values, sizeof(Datum) * columns->natts);
    memcpy(new_row->tts_isnull, old_row->tts_isnull, sizeof(bool) * columns->natts);
    if (execution->has_dropped_columns)
        for (int i = 0; i < columns->natts; i++)
            if (TupleDescAttr(columns, i)->attisdropped)
                new_row->tts_isnull[i] = true;
    put_changes(new_row, execution->update->changes);
    put_changes(new_row, execution->update->computed);
    ExecStoreVirtualTuple(new_row);
}

// Returns false when the row must not be written.
static bool ask_row_checks(Execution* execution) {
    const RowUpdate& update = *execution->update;
    RowChange change = {update.row.rel,     update.row.info,     execution->old_row,
                        execution->new_row, execution->assigned, update.function};
    return decide(&change);
}

static bool ask_triggers(Execution* execution) {
    if (execution->only_row_checks)
        return ask_row_checks(execution);
    ResultRelInfo* target = execution->target;
    return target->ri_TrigDesc == nullptr || !target->ri_TrigDesc->trig_update_before_row ||
           fire_before_update(execution->estate, &execution->recheck, target, &execution->place,
                              execution->new_row);
}

static void check_new_row(Execution* execution) {
    Relation rel = execution->update->row.rel;
    TupleTableSlot* new_row = execution->new_row;
    new_row->tts_tableOid = RelationGetRelid(rel);
    if (has_generated_columns(rel))
        ExecComputeStoredGenerated(execution->target, execution->estate, new_row, CMD_UPDATE);
    // ExecUpdateAct checks the row after forming the tuple, which must be deformed for that; the
    // values are the same.
    check_row(execution->target, execution->estate, new_row, execution->update->row.info);
    ExecMaterializeSlot(new_row);
}

// Indexes are opened only for a row that needs entries in them; one that is updated in its page
// (HOT) does not.
static List* write_index_entries(Execution* execution, IndexesToUpdate indexes) {
    ResultRelInfo* target = execution->target;
    if (indexes == kNoIndexes || !execution->update->row.rel->rd_rel->relhasindex)
        return NIL;
    if (target->ri_IndexRelationDescs == nullptr)
        in_context(execution->estate->es_query_cxt, [&] {
            ExecOpenIndices(target, false);
            return 0;
        });
    if (target->ri_NumIndices == 0)
        return NIL;
    return insert_index_entries(target, execution->estate, execution->new_row, indexes);
}

static Written write_heap(Execution* execution, IndexesToUpdate* indexes) {
    EState* estate = execution->estate;
    TM_FailureData failure;
    LockTupleMode mode;
    TM_Result result =
        update_tuple(execution->update->row.rel, &execution->place, execution->new_row,
                     estate->es_output_cid, estate->es_snapshot, &failure, &mode, indexes);
    switch (result) {
    case TM_Ok:
        return Written::kYes;
    case TM_Updated:
    case TM_Deleted:
        return Written::kOvertaken;
    case TM_SelfModified: // by one of the row's own BEFORE triggers
        refuse_modified_twice();
    default:
        elog(ERROR, "unexpected table_tuple_update status: %u", result);
    }
    pg_unreachable();
}

// Writes the new version of the old row, which is at `place`.
static Written write_row(Execution* execution) {
    make_new_row(execution);
    if (!ask_triggers(execution))
        return Written::kSuppressed;
    check_new_row(execution);
    IndexesToUpdate indexes = kNoIndexes;
    Written written = write_heap(execution, &indexes);
    if (written != Written::kYes)
        return written;
    List* to_check_again = write_index_entries(execution, indexes);
    ExecARUpdateTriggers(execution->estate, execution->target, nullptr, nullptr, &execution->place,
                         nullptr, execution->new_row, to_check_again, nullptr, false);
    return written;
}

static Written write_untouched(Execution* execution) {
    if (!execution->only_row_checks || execution->update->lock_first ||
        !is_untouched(row_in(execution->old_row)))
        return Written::kOvertaken;
    execution->place = execution->old_row->tts_tid;
    return write_row(execution);
}

static Written write_locked(Execution* execution, RowCallback condition) {
    if (!lock_newest(execution, condition))
        return Written::kNoRow;
    Written written = write_row(execution);
    if (written == Written::kOvertaken)
        elog(ERROR, "a locked row was updated by another transaction");
    return written;
}

// --- The whole -------------------------------------------------------------------

static Written find_and_write(Execution* execution, RowCallback condition, RowCallback returning) {
    if (!probe_key(execution->update->row, execution->index, execution->old_row) ||
        !condition.call(condition.closure, execution->old_row))
        return Written::kNoRow;
    begin_row(execution);
    Written written = write_untouched(execution);
    if (written == Written::kOvertaken)
        written = write_locked(execution, condition);
    if (written == Written::kYes)
        returning.call(returning.closure, execution->new_row);
    AfterTriggerEndQuery(execution->estate);
    return written;
}

static DirectOutcome outcome_of(Written written) {
    switch (written) {
    case Written::kYes:
        return DirectOutcome::kDone;
    case Written::kSuppressed:
        return DirectOutcome::kSuppressed;
    default:
        return DirectOutcome::kNoRow;
    }
}

// Other code, if any runs, must see which function writes. Whether any runs is known only after the
// execution is open, as opening it may process invalidations.
static bool must_show_function(const Execution& execution) {
    const RowUpdate& update = *execution.update;
    return update.function != nullptr && !(execution.only_row_checks && runs_no_other_code(update));
}

static DirectOutcome execute(Execution* execution, const RowUpdate& update, RowCallback condition,
                             RowCallback returning) {
    execution->update = &update;
    CommandCounterIncrement();
    PushActiveSnapshot(GetTransactionSnapshot());
    Written written = Written::kNoRow;
    auto write = [&] {
        auto find = [&] { written = find_and_write(execution, condition, returning); };
        // Our BEFORE triggers, if they fire, must not take it for a write of the statement around.
        if (execution->only_row_checks)
            find();
        else
            as_own_write(find);
    };
    if (must_show_function(*execution))
        run_as(*update.function, write);
    else
        write();
    PopActiveSnapshot();
    CommandCounterIncrement();
    execution->update = nullptr;
    return outcome_of(written);
}

DirectOutcome update_directly(const RowUpdate& update, RowCallback condition, RowCallback returning,
                              OpenUpdates* open) {
    if (open != nullptr && open->execution != nullptr) {
        if (update.row.info->valid &&
            RelationGetRelid(open->execution->index) == update.row.key->by->index &&
            bms_equal(open->execution->columns, update.changes.columns))
            return execute(open->execution, update, condition, returning);
        close_updates(open);
    }
    if (!may_update_without_statement(update.row))
        return DirectOutcome::kDeclined;
    Execution* execution = in_context(open != nullptr ? open->memory : CurrentMemoryContext,
                                      [&] { return open_execution(update, open != nullptr); });
    if (execution == nullptr)
        return DirectOutcome::kDeclined;
    DirectOutcome outcome = execute(execution, update, condition, returning);
    // Other code could change the table, and so invalidate its metadata.
    if (open != nullptr && runs_no_other_code(update))
        open->execution = execution;
    else
        close_execution(execution);
    return outcome;
}

void close_updates(OpenUpdates* open) {
    if (open->execution != nullptr)
        close_execution(open->execution);
    open->execution = nullptr;
}

} // namespace interlock::inline execution

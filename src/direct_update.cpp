#include "direct_update.h"

#include "scope.h"

namespace interlock {

namespace {

// What the executor keeps for a statement.
struct Execution {
    const RowUpdate* update;
    EState* estate;
    ResultRelInfo* target;
    EPQState recheck; // for the triggers; nothing is left to check again when they run
    TupleTableSlot* old_row;
    TupleTableSlot* new_row;
    ItemPointerData place; // of the old row
};

// --- What is declined ----------------------------------------------------------

bool has_row_triggers_only(Relation rel) {
    const TriggerDesc* triggers = rel->trigdesc;
    return triggers == nullptr ||
           !(triggers->trig_update_before_statement || triggers->trig_update_after_statement ||
             triggers->trig_update_old_table || triggers->trig_update_new_table);
}

bool may_update_directly(const RowUpdate& update) {
    return has_row_triggers_only(update.row.rel) &&
           may_act_directly(update.row, ACL_SELECT | ACL_UPDATE);
}

// --- The executor's state -------------------------------------------------------

Bitmapset* offset_columns(const Bitmapset* columns) {
    Bitmapset* result = nullptr;
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;)
        result = bms_add_member(result, column - FirstLowInvalidHeapAttributeNumber);
    return result;
}

RangeTblEntry* range_table_entry(Relation rel) {
    auto* entry = makeNode(RangeTblEntry);
    entry->rtekind = RTE_RELATION;
    entry->relid = RelationGetRelid(rel);
    entry->relkind = rel->rd_rel->relkind;
    entry->rellockmode = RowExclusiveLock;
    return entry;
}

// In the query's memory context.
void begin_execution(Execution* execution) {
    EState* estate = execution->estate;
    Relation rel = execution->update->row.rel;
    set_updated_columns(estate, range_table_entry(rel),
                        offset_columns(execution->update->changes.columns));
    execution->target = makeNode(ResultRelInfo);
    InitResultRelInfo(execution->target, rel, 1, nullptr, 0);
    // AFTER triggers look for their table here.
    estate->es_opened_result_relations = list_make1(execution->target);
    estate->es_snapshot = GetActiveSnapshot();
    estate->es_output_cid = GetCurrentCommandId(true);
    begin_recheck(&execution->recheck, estate);
    execution->new_row = table_slot_create(rel, &estate->es_tupleTable);
    AfterTriggerBeginQuery();
}

void end_execution(Execution* execution) {
    AfterTriggerEndQuery(execution->estate);
    // Also closes the tables of triggers that a foreign key's cascade fired.
    ExecCloseResultRelations(execution->estate);
}

// --- Locking the row -------------------------------------------------------------

[[noreturn]] void refuse_modified_twice() {
    ereport(ERROR,
            (errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
             errmsg("tuple to be updated was already modified by an operation triggered by the "
                    "current command"),
             errhint("Consider using an AFTER trigger instead of a BEFORE trigger to propagate "
                     "changes to other rows.")));
}

// Locks the newest version of the row, after a wait if need be. A version that is newer than the
// snapshot must have the key and meet the condition again.
bool lock_newest(Execution* execution, RowCallback condition) {
    const RowUpdate& update = *execution->update;
    EState* estate = execution->estate;
    execution->place = execution->old_row->tts_tid;
    ExecClearTuple(execution->old_row);
    TM_FailureData failure;
    TM_Result result =
        table_tuple_lock(update.row.rel, &execution->place, estate->es_snapshot, execution->old_row,
                         estate->es_output_cid, ExecUpdateLockMode(estate, execution->target),
                         LockWaitBlock, TUPLE_LOCK_FLAG_FIND_LAST_VERSION, &failure);
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
    HeapTuple row = row_in(execution->old_row);
    return has_key(update.row, row) && condition.call(condition.closure, row);
}

// --- Writing it -----------------------------------------------------------------

void make_new_row(Execution* execution) {
    TupleTableSlot* old_row = execution->old_row;
    TupleTableSlot* new_row = execution->new_row;
    TupleDesc columns = RelationGetDescr(execution->update->row.rel);
    slot_getallattrs(old_row);
    for (int i = 0; i < columns->natts; i++) {
        new_row->tts_isnull[i] = old_row->tts_isnull[i] || TupleDescAttr(columns, i)->attisdropped;
        new_row->tts_values[i] = new_row->tts_isnull[i] ? 0 : old_row->tts_values[i];
    }
    const Changes& changes = execution->update->changes;
    for (int i = 0; i < changes.count; i++) {
        new_row->tts_values[changes.attnums[i] - 1] = changes.values[i];
        new_row->tts_isnull[changes.attnums[i] - 1] = changes.nulls[i];
    }
    ExecStoreVirtualTuple(new_row);
    ExecMaterializeSlot(new_row);
}

// Indexes are opened only for a row that needs entries in them; one that is updated in its page
// (HOT) does not.
List* write_index_entries(Execution* execution, IndexesToUpdate indexes) {
    if (indexes == kNoIndexes || !execution->update->row.rel->rd_rel->relhasindex)
        return NIL;
    ExecOpenIndices(execution->target, false);
    if (execution->target->ri_NumIndices == 0)
        return NIL;
    return insert_index_entries(execution->target, execution->estate, execution->new_row, indexes);
}

IndexesToUpdate write_heap(Execution* execution) {
    EState* estate = execution->estate;
    TM_FailureData failure;
    LockTupleMode mode;
    IndexesToUpdate indexes = kNoIndexes;
    TM_Result result = table_tuple_update(
        execution->update->row.rel, &execution->place, execution->new_row, estate->es_output_cid,
        estate->es_snapshot, InvalidSnapshot, true, &failure, &mode, &indexes);
    if (result == TM_SelfModified) // by one of the row's own BEFORE triggers
        refuse_modified_twice();
    if (result != TM_Ok)
        elog(ERROR, "unexpected table_tuple_update status: %u", result);
    return indexes;
}

// Returns false when a BEFORE trigger suppresses the update.
bool write_row(Execution* execution) {
    EState* estate = execution->estate;
    ResultRelInfo* target = execution->target;
    TupleTableSlot* new_row = execution->new_row;
    const TupleConstr* constraints = RelationGetDescr(execution->update->row.rel)->constr;
    if (target->ri_TrigDesc != nullptr && target->ri_TrigDesc->trig_update_before_row &&
        !fire_before_update(estate, &execution->recheck, target, &execution->place, new_row))
        return false;
    new_row->tts_tableOid = RelationGetRelid(execution->update->row.rel);
    if (constraints != nullptr && constraints->has_generated_stored)
        ExecComputeStoredGenerated(target, estate, new_row, CMD_UPDATE);
    ExecMaterializeSlot(new_row);
    if (constraints != nullptr)
        ExecConstraints(target, new_row, estate);
    List* to_check_again = write_index_entries(execution, write_heap(execution));
    ExecARUpdateTriggers(estate, target, nullptr, nullptr, &execution->place, nullptr, new_row,
                         to_check_again, nullptr, false);
    return true;
}

// --- The whole -------------------------------------------------------------------

bool find_and_write(Execution* execution, Relation index, RowCallback condition,
                    RowCallback returning) {
    if (!probe_key(execution->update->row, index, execution->old_row) ||
        !condition.call(condition.closure, row_in(execution->old_row)))
        return false;
    begin_execution(execution);
    bool written = false;
    if (lock_newest(execution, condition)) {
        make_new_row(execution);
        written = write_row(execution);
    }
    if (written)
        returning.call(returning.closure, row_in(execution->new_row));
    end_execution(execution);
    return written;
}

bool execute(const RowUpdate& update, Relation index, RowCallback condition,
             RowCallback returning) {
    Execution execution = {};
    execution.update = &update;
    execution.estate = CreateExecutorState();
    bool written = in_context(execution.estate->es_query_cxt, [&] {
        execution.old_row = table_slot_create(update.row.rel, &execution.estate->es_tupleTable);
        bool result = find_and_write(&execution, index, condition, returning);
        ExecResetTupleTable(execution.estate->es_tupleTable, false);
        return result;
    });
    FreeExecutorState(execution.estate);
    return written;
}

} // namespace

DirectOutcome update_directly(const RowUpdate& update, RowCallback condition,
                              RowCallback returning) {
    if (!may_update_directly(update))
        return DirectOutcome::kDeclined;
    Relation index = open_key_index(update.row.facts, RowExclusiveLock);
    if (index == nullptr)
        return DirectOutcome::kDeclined;
    CheckCmdReplicaIdentity(update.row.rel, CMD_UPDATE);
    CommandCounterIncrement();
    PushActiveSnapshot(GetTransactionSnapshot());
    bool written = execute(update, index, condition, returning);
    PopActiveSnapshot();
    CommandCounterIncrement();
    index_close(index, NoLock);
    return written ? DirectOutcome::kDone : DirectOutcome::kNoRow;
}

Changes extended(const Changes& changes, int more) {
    Changes result = {};
    int capacity = changes.count + more;
    result.count = changes.count;
    result.columns = bms_copy(changes.columns);
    result.attnums = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * capacity));
    result.values = static_cast<Datum*>(palloc(sizeof(Datum) * capacity));
    result.nulls = static_cast<bool*>(palloc(sizeof(bool) * capacity));
    for (int i = 0; i < changes.count; i++) {
        result.attnums[i] = changes.attnums[i];
        result.values[i] = changes.values[i];
        result.nulls[i] = changes.nulls[i];
    }
    return result;
}

void assign(Changes* changes, AttrNumber attnum) {
    changes->columns = bms_add_member(changes->columns, attnum);
}

void assign(Changes* changes, AttrNumber attnum, Datum value) {
    assign(changes, attnum);
    changes->attnums[changes->count] = attnum;
    changes->values[changes->count] = value;
    changes->nulls[changes->count++] = false;
}

} // namespace interlock

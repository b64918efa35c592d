#include "execution/partition_move.h"

#include "execution/execution.h"
#include "table/last_word.h"
#include "table/row.h"

namespace interlock::inline execution {

static bool partition_columns_change(const RowChange& change) {
    const Bitmapset* columns = change.info->partition_columns;
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;)
        if (!same_value(RelationGetDescr(change.rel), change.old_row, change.new_row, column))
            return true;
    return false;
}

// --- By the bounds: a move of many rows would take several times as long with the executor

namespace {

struct KeyValues {
    Datum values[PARTITION_MAX_KEYS];
    bool nulls[PARTITION_MAX_KEYS];
    bool any_null;
};

} // namespace

// Columns have the same names throughout a partitioned table. False for partition keys that are
// expressions.
static bool read_key(const RowChange& change, Relation table, PartitionKey key, KeyValues* row) {
    row->any_null = false;
    for (int i = 0; i < key->partnatts; i++) {
        if (key->partattrs[i] == 0)
            return false;
        Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(table), key->partattrs[i] - 1);
        AttrNumber column = find_attribute(change.info->columns, NameStr(attribute->attname));
        row->values[i] = slot_getattr(change.new_row, column, &row->nulls[i]);
        row->any_null = row->any_null || row->nulls[i];
    }
    return true;
}

static int partition_by_list(PartitionKey key, PartitionBoundInfo bounds, const KeyValues& row) {
    if (row.any_null)
        return bounds->null_index;
    bool equal = false;
    int offset =
        partition_list_bsearch(key->partsupfunc, key->partcollation, bounds, row.values[0], &equal);
    return offset >= 0 && equal ? bounds->indexes[offset] : -1;
}

static int partition_by_range(PartitionKey key, PartitionBoundInfo bounds, KeyValues* row) {
    if (row->any_null)
        return -1;
    bool equal = false;
    int offset = partition_range_datum_bsearch(key->partsupfunc, key->partcollation, bounds,
                                               key->partnatts, row->values, &equal);
    return bounds->indexes[offset + 1];
}

static int partition_by_hash(PartitionKey key, PartitionBoundInfo bounds, KeyValues* row) {
    uint64 hash = compute_partition_hash_value(key->partnatts, key->partsupfunc, key->partcollation,
                                               row->values, row->nulls);
    return bounds->indexes[hash % bounds->nindexes];
}

static int partition_index(PartitionKey key, PartitionBoundInfo bounds, KeyValues* row) {
    int index = key->strategy == PARTITION_STRATEGY_HASH   ? partition_by_hash(key, bounds, row)
                : key->strategy == PARTITION_STRATEGY_LIST ? partition_by_list(key, bounds, *row)
                                                           : partition_by_range(key, bounds, row);
    return index >= 0 ? index : bounds->default_index;
}

// False when a key on the way is an expression; *leaf is InvalidOid when the row fits nowhere.
static bool route_by_bounds(const RowChange& change, Oid* leaf) {
    Oid next = change.info->partition_root;
    bool is_leaf = false;
    bool found = true;
    while (found && OidIsValid(next) && !is_leaf) {
        Relation table = table_open(next, AccessShareLock);
        PartitionKey key = RelationGetPartitionKey(table);
        PartitionDesc partitions = RelationGetPartitionDesc(table, false);
        KeyValues row = {};
        found = read_key(change, table, key, &row);
        int index = found && partitions->nparts > 0
                        ? partition_index(key, partitions->boundinfo, &row)
                        : -1;
        next = index >= 0 ? partitions->oids[index] : InvalidOid;
        is_leaf = index >= 0 && partitions->is_leaf[index];
        table_close(table, NoLock);
    }
    *leaf = next;
    return found;
}

// --- By the executor, as COPY routes the rows that it reads

// The row with the columns of the table at the top.
static TupleTableSlot* row_of_root(const RowChange& change, Relation root, EState* estate) {
    TupleConversionMap* map =
        convert_tuples_by_name(RelationGetDescr(change.rel), RelationGetDescr(root));
    if (map == nullptr)
        return change.new_row;
    TupleTableSlot* row = ExecInitExtraTupleSlot(estate, RelationGetDescr(root), &TTSOpsVirtual);
    return execute_attr_map_slot(map->attrMap, change.new_row, row);
}

static ModifyTableState* routing_state(EState* estate, Relation root) {
    auto* state = makeNode(ModifyTableState);
    state->ps.state = estate;
    state->operation = CMD_INSERT;
    state->mt_nrels = 1;
    state->resultRelInfo = open_target(estate, root, nullptr, nullptr);
    state->rootResultRelInfo = state->resultRelInfo;
    return state;
}

static Oid route_by_executor(const RowChange& change) {
    Relation root = table_open(change.info->partition_root, AccessShareLock);
    EState* estate = CreateExecutorState();
    MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);
    ModifyTableState* state = routing_state(estate, root);
    PartitionTupleRouting* routing = ExecSetupPartitionTupleRouting(estate, root);
    TupleTableSlot* row = row_of_root(change, root, estate);
    ResultRelInfo* partition =
        ExecFindPartition(state, state->rootResultRelInfo, routing, row, estate);
    Oid leaf = RelationGetRelid(partition->ri_RelationDesc);
    ExecCleanupTupleRouting(state, routing);
    MemoryContextSwitchTo(caller);
    free_state(estate);
    table_close(root, NoLock);
    return leaf;
}

Oid new_partition(const RowChange& change) {
    if (change.info->partition_columns == nullptr || !partition_columns_change(change))
        return InvalidOid;
    Oid leaf;
    if (!route_by_bounds(change, &leaf))
        leaf = route_by_executor(change);
    return leaf != change.info->relid ? leaf : InvalidOid;
}

[[noreturn]] static void raise_unchecked_move(Relation rel, Relation partition,
                                              const char* trigger) {
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("trigger \"%s\" of table \"%s\" could change the row after it was checked", trigger,
                RelationGetRelationName(partition)),
         errdetail("The row moves there from partition \"%s\", and is not checked again.",
                   RelationGetRelationName(rel)),
         errhint("Let the trigger fire AFTER INSERT, replace it by a column default, or move the "
                 "row by a DELETE and an INSERT.")));
}

static void refuse_insert_triggers(Relation rel, Relation partition) {
    const TriggerDesc* triggers = CopyTriggerDesc(partition->trigdesc);
    for (int i = 0; i < triggers->numtriggers; i++) {
        const Trigger* trigger = &triggers->triggers[i];
        if (changes_new_rows(trigger))
            raise_unchecked_move(rel, partition, trigger->tgname);
    }
}

void refuse_unchecked_move(const RowChange& change) {
    Oid relid = new_partition(change);
    if (!OidIsValid(relid))
        return;
    // The lock that the server's INSERT takes: no trigger can be created until then.
    Relation partition = table_open(relid, RowExclusiveLock);
    if (partition->trigdesc != nullptr && partition->trigdesc->trig_insert_before_row)
        refuse_insert_triggers(change.rel, partition);
    table_close(partition, NoLock);
}

} // namespace interlock::inline execution

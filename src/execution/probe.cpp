#include "execution/probe.h"

#include "server/scope.h"

namespace interlock::inline execution {

static bool index_fits(const UniqueKey& key, Relation index) {
    for (int i = 0; i < key.count; i++)
        if (index->rd_indcollation[i] != key.columns[i].collation)
            return false;
    return true;
}

static void set_scan_keys(ScanKey keys, const KeyedRow& row) {
    const UniqueKey* by = row.key->by;
    for (int i = 0; i < by->count; i++) {
        const KeyColumn& key = by->columns[i];
        ScanKeyEntryInitializeWithInfo(&keys[i], 0, i + 1, BTEqualStrategyNumber, InvalidOid,
                                       key.collation, const_cast<FmgrInfo*>(&key.equal),
                                       row.key->values[i]);
    }
}

Relation open_key_index(const UniqueKey& key, LOCKMODE mode) {
    Relation index = try_relation_open(key.index, mode);
    if (index == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("the index of the key was dropped during the call"),
                        errhint("A function that converts or checks a value has dropped it.")));
    if (index_fits(key, index))
        return index;
    index_close(index, NoLock);
    return nullptr;
}

IndexScanDesc begin_probes(Relation rel, Relation index) {
    return begin_index_scan(rel, index, SnapshotAny, IndexRelationGetNumberOfKeyAttributes(index));
}

bool probe_next(const KeyedRow& row, IndexScanDesc scan, TupleTableSlot* slot) {
    ScanKeyData keys[INDEX_MAX_KEYS];
    set_scan_keys(keys, row);
    scan->xs_snapshot = GetActiveSnapshot();
    // What the scan remembers from row to row lives as long as it does.
    return in_context(GetMemoryChunkContext(scan), [&] {
        index_rescan(scan, keys, row.key->by->count, nullptr, 0);
        return index_getnext_slot(scan, ForwardScanDirection, slot);
    });
}

bool probe_key(const KeyedRow& row, Relation index, TupleTableSlot* slot) {
    IndexScanDesc scan = begin_probes(row.rel, index);
    bool found = probe_next(row, scan, slot);
    index_endscan(scan);
    return found;
}

bool probe_uncommitted(const KeyedRow& row, Relation index, TupleTableSlot* slot) {
    SnapshotData dirty;
    InitDirtySnapshot(dirty);
    ScanKeyData keys[INDEX_MAX_KEYS];
    set_scan_keys(keys, row);
    IndexScanDesc scan =
        begin_index_scan(row.rel, index, &dirty, IndexRelationGetNumberOfKeyAttributes(index));
    index_rescan(scan, keys, row.key->by->count, nullptr, 0);
    bool found = false;
    // The snapshot has the writer of the version that the scan returned, if it is still running.
    while (!found && index_getnext_slot(scan, ForwardScanDirection, slot))
        found = TransactionIdIsValid(dirty.xmin);
    index_endscan(scan);
    return found;
}

bool has_key(const KeyedRow& row, HeapTuple version) {
    const UniqueKey* by = row.key->by;
    for (int i = 0; i < by->count; i++) {
        const KeyColumn& key = by->columns[i];
        bool is_null;
        Datum value = heap_getattr(version, key.attnum, RelationGetDescr(row.rel), &is_null);
        if (is_null || !DatumGetBool(FunctionCall2Coll(const_cast<FmgrInfo*>(&key.equal),
                                                       key.collation, value, row.key->values[i])))
            return false;
    }
    return true;
}

} // namespace interlock::inline execution

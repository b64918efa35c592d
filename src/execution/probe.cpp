#include "execution/probe.h"

#include "server/scope.h"

namespace interlock {

namespace {

bool index_fits(const TableInfo* info, Relation index) {
    for (int i = 0; i < info->key_count; i++)
        if (index->rd_indcollation[i] != info->keys[i].collation)
            return false;
    return true;
}

void set_scan_keys(ScanKey keys, const KeyedRow& row) {
    for (int i = 0; i < row.info->key_count; i++) {
        const KeyColumn& key = row.info->keys[i];
        ScanKeyEntryInitializeWithInfo(&keys[i], 0, i + 1, BTEqualStrategyNumber, InvalidOid,
                                       key.collation, const_cast<FmgrInfo*>(&key.equal),
                                       row.key->values[i]);
    }
}

} // namespace

Relation open_key_index(const TableInfo* info, LOCKMODE mode) {
    Relation index = index_open(info->key_index, mode);
    if (index_fits(info, index))
        return index;
    index_close(index, NoLock);
    return nullptr;
}

IndexScanDesc begin_probes(Relation rel, const TableInfo* info, Relation index) {
    return begin_index_scan(rel, index, SnapshotAny, info->key_count);
}

bool probe_next(const KeyedRow& row, IndexScanDesc scan, TupleTableSlot* slot) {
    ScanKeyData keys[INDEX_MAX_KEYS];
    set_scan_keys(keys, row);
    scan->xs_snapshot = GetActiveSnapshot();
    // What the scan remembers from row to row lives as long as it does.
    return in_context(GetMemoryChunkContext(scan), [&] {
        index_rescan(scan, keys, row.info->key_count, nullptr, 0);
        return index_getnext_slot(scan, ForwardScanDirection, slot);
    });
}

bool probe_key(const KeyedRow& row, Relation index, TupleTableSlot* slot) {
    IndexScanDesc scan = begin_probes(row.rel, row.info, index);
    bool found = probe_next(row, scan, slot);
    index_endscan(scan);
    return found;
}

bool has_key(const KeyedRow& row, HeapTuple version) {
    for (int i = 0; i < row.info->key_count; i++) {
        const KeyColumn& key = row.info->keys[i];
        bool is_null;
        Datum value = heap_getattr(version, key.attnum, RelationGetDescr(row.rel), &is_null);
        if (is_null || !DatumGetBool(FunctionCall2Coll(const_cast<FmgrInfo*>(&key.equal),
                                                       key.collation, value, row.key->values[i])))
            return false;
    }
    return true;
}

} // namespace interlock

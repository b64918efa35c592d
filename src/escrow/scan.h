// Reads the tables of escrow counters by their indexes, without statements.
#pragma once

#include "server/append.h"
#include "table/own_table.h"

namespace interlock::escrow {

// The newest snapshot. Raises 25000 in parallel mode, which has none.
inline Snapshot latest_snapshot() {
    PreventCommandIfParallelMode("a function of escrow counters");
    return GetLatestSnapshot();
}

// Calls visit(table, tuple) for the rows of one scan until it returns false.
template <typename Visit>
void scan_rows(const char* table, const char* index, LOCKMODE mode, Snapshot snapshot,
               ScanKeyData* keys, int count, Visit&& visit) {
    // The lock of the table prevents that REINDEX CONCURRENTLY drops the index with the name.
    Relation rel = table_open(internal_table(table), mode);
    Oid found = get_relname_relid(index, internal_schema());
    if (!OidIsValid(found))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("index \"%s.%s\" does not exist", kInternalSchema, index)));
    SysScanDesc scan = systable_beginscan(rel, found, true, snapshot, count, keys);
    HeapTuple tuple;
    while (HeapTupleIsValid(tuple = systable_getnext(scan)) && visit(rel, tuple))
        CHECK_FOR_INTERRUPTS();
    systable_endscan(scan);
    table_close(rel, NoLock);
}

template <typename Body>
void with_snapshot(Snapshot snapshot, Body&& body) {
    Snapshot registered = RegisterSnapshot(snapshot);
    body(registered);
    UnregisterSnapshot(registered);
}

inline NullableDatum column_of(Relation rel, HeapTuple tuple, int column) {
    NullableDatum value;
    value.value = heap_getattr(tuple, column, RelationGetDescr(rel), &value.isnull);
    return value;
}

} // namespace interlock::escrow

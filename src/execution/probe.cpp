#include "execution/probe.h"

#include "server/scope.h"
#include "table/relation_code.h"

namespace interlock {

namespace {

bool direct_updates = true;

bool sees_all_rows(Relation rel) {
    return !rel->rd_rel->relrowsecurity ||
           check_enable_rls(RelationGetRelid(rel), InvalidOid, true) != RLS_ENABLED;
}

bool index_fits(const RelationFacts* facts, Relation index) {
    for (int i = 0; i < facts->key_count; i++)
        if (index->rd_indcollation[i] != facts->keys[i].collation)
            return false;
    return true;
}

void set_scan_keys(ScanKey keys, const KeyedRow& row) {
    for (int i = 0; i < row.facts->key_count; i++) {
        const KeyColumn& key = row.facts->keys[i];
        ScanKeyEntryInitializeWithInfo(&keys[i], 0, i + 1, BTEqualStrategyNumber, InvalidOid,
                                       key.collation, const_cast<FmgrInfo*>(&key.equal),
                                       row.key->values[i]);
    }
}

} // namespace

bool is_plain_transaction() { return may_be_direct() && !IsolationUsesXactSnapshot(); }

bool may_be_direct() {
    return direct_updates && !XactReadOnly && !IsInParallelMode() &&
           ExecutorCheckPerms_hook == nullptr;
}

bool is_plain_table(Relation rel) {
    return rel->rd_rel->relkind == RELKIND_RELATION && rel->rd_rel->relam == HEAP_TABLE_AM_OID &&
           !rel->rd_rel->relispartition && !rel->rd_rel->relhassubclass &&
           rel->rd_rules == nullptr && !has_virtual_columns(RelationGetDescr(rel));
}

bool may_act_directly(const KeyedRow& row, AclMode needed) {
    return is_plain_transaction() && is_plain_table(row.rel) &&
           has_plain_rights(row.facts, RelationGetNamespace(row.rel), needed) &&
           sees_all_rows(row.rel);
}

bool has_plain_rights(const RelationFacts* facts, Oid schema, AclMode needed) {
    Oid user = GetUserId();
    if (pg_class_aclmask(facts->relid, user, needed, ACLMASK_ALL) != needed)
        return false;
    if (check_schema_privilege(schema, user) != ACLCHECK_OK)
        return false;
    for (int i = 0; i < facts->key_count; i++) {
        Oid equal = facts->keys[i].equal.fn_oid;
        if (!is_built_in(equal) || check_function_privilege(equal, user) != ACLCHECK_OK)
            return false;
    }
    return true;
}

Relation open_key_index(const RelationFacts* facts, LOCKMODE mode) {
    Relation index = index_open(facts->key_index, mode);
    if (index_fits(facts, index))
        return index;
    index_close(index, NoLock);
    return nullptr;
}

IndexScanDesc begin_probes(Relation rel, const RelationFacts* facts, Relation index) {
    return begin_index_scan(rel, index, SnapshotAny, facts->key_count);
}

bool probe_next(const KeyedRow& row, IndexScanDesc scan, TupleTableSlot* slot) {
    ScanKeyData keys[INDEX_MAX_KEYS];
    set_scan_keys(keys, row);
    scan->xs_snapshot = GetActiveSnapshot();
    // What the scan remembers from row to row lives as long as it does.
    return in_context(GetMemoryChunkContext(scan), [&] {
        index_rescan(scan, keys, row.facts->key_count, nullptr, 0);
        return index_getnext_slot(scan, ForwardScanDirection, slot);
    });
}

bool probe_key(const KeyedRow& row, Relation index, TupleTableSlot* slot) {
    IndexScanDesc scan = begin_probes(row.rel, row.facts, index);
    bool found = probe_next(row, scan, slot);
    index_endscan(scan);
    return found;
}

bool has_key(const KeyedRow& row, HeapTuple version) {
    for (int i = 0; i < row.facts->key_count; i++) {
        const KeyColumn& key = row.facts->keys[i];
        bool is_null;
        Datum value = heap_getattr(version, key.attnum, RelationGetDescr(row.rel), &is_null);
        if (is_null || !DatumGetBool(FunctionCall2Coll(const_cast<FmgrInfo*>(&key.equal),
                                                       key.collation, value, row.key->values[i])))
            return false;
    }
    return true;
}

void define_direct_settings() {
    DefineCustomBoolVariable(
        "interlock.direct_updates",
        "Reads, locks and writes a row without a statement where that is the same.", nullptr,
        &direct_updates, true, PGC_SUSET, 0, nullptr, nullptr, nullptr);
}

} // namespace interlock

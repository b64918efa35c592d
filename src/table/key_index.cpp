#include "table/key_index.h"

#include "table/name.h"

namespace interlock {

namespace {

bool all_not_null(Relation rel, Form_pg_index index) {
    for (int i = 0; i < index->indnkeyatts; i++) {
        AttrNumber attnum = index->indkey.values[i];
        if (attnum <= 0 || !TupleDescAttr(RelationGetDescr(rel), attnum - 1)->attnotnull)
            return false;
    }
    return true;
}

bool is_btree(Oid index) {
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
    if (!HeapTupleIsValid(tuple))
        return false;
    Oid method = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relam;
    ReleaseSysCache(tuple);
    return method == BTREE_AM_OID;
}

// Whether the index names exactly one row at every moment.
bool is_unique_key(Relation rel, HeapTuple tuple) {
    auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
    return index->indisunique && index->indisvalid && index->indimmediate &&
           heap_attisnull(tuple, Anum_pg_index_indpred, nullptr) && is_btree(index->indexrelid) &&
           all_not_null(rel, index);
}

// The primary key, else the narrowest NOT NULL unique index (the oldest of several); null if there
// is none. The indexes are not opened: another transaction may have locked one.
HeapTuple choose_key_index(Relation rel) {
    HeapTuple best = nullptr;
    int best_width = 0;
    List* indexes = RelationGetIndexList(rel); // in the order of their oids
    ListCell* cell;
    foreach (cell, indexes) {
        HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));
        if (!HeapTupleIsValid(tuple))
            continue;
        auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
        int width = index->indisprimary ? 0 : index->indnkeyatts;
        if (is_unique_key(rel, tuple) && (best == nullptr || width < best_width)) {
            best = heap_copytuple(tuple);
            best_width = width;
        }
        ReleaseSysCache(tuple);
    }
    list_free(indexes);
    return best;
}

void load_key_column(TableInfo* info, Relation index, int i) {
    KeyColumn* key = &info->keys[i];
    Oid family = index->rd_opfamily[i];
    Oid input_type = index->rd_opcintype[i];

    key->attnum = index->rd_index->indkey.values[i];
    Form_pg_attribute attribute = TupleDescAttr(info->columns, key->attnum - 1);
    key->type = getBaseType(attribute->atttypid);
    key->collation = attribute->attcollation;

    Oid input_function;
    getTypeInputInfo(key->type, &input_function, &key->io_parameter);
    fmgr_info_cxt(input_function, &key->input, info->memory);
    fmgr_info_cxt(get_opfamily_proc(family, input_type, input_type, BTORDER_PROC), &key->compare,
                  info->memory);
    Oid equals = get_opfamily_member(family, input_type, input_type, BTEqualStrategyNumber);
    fmgr_info_cxt(get_opcode(equals), &key->equal, info->memory);
    key->equals = operator_text(equals);
    info->key_columns = bms_add_member(info->key_columns, key->attnum);
}

} // namespace

void load_key(TableInfo* info, Relation rel) {
    HeapTuple chosen = choose_key_index(rel);
    if (chosen == nullptr)
        return;
    info->key_index = reinterpret_cast<Form_pg_index>(GETSTRUCT(chosen))->indexrelid;
    Relation index = index_open(info->key_index, AccessShareLock);
    info->key_count = index->rd_index->indnkeyatts;
    info->keys = static_cast<KeyColumn*>(palloc0(sizeof(KeyColumn) * info->key_count));
    for (int i = 0; i < info->key_count; i++)
        load_key_column(info, index, i);
    index_close(index, AccessShareLock);
}

void require_key(Relation rel, const TableInfo* info) {
    if (info->key_count == 0)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("table \"%s\" has no key that names one row", RelationGetRelationName(rel)),
             errhint("Add a primary key, or a unique index over columns that are NOT NULL; not a "
                     "deferrable or a partial one.")));
}

List* key_column_names(Relation rel) {
    List* names = NIL;
    HeapTuple chosen = choose_key_index(rel);
    if (chosen == nullptr)
        return NIL;
    auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(chosen));
    for (int i = 0; i < index->indnkeyatts; i++) {
        Form_pg_attribute column =
            TupleDescAttr(RelationGetDescr(rel), index->indkey.values[i] - 1);
        names = lappend(names, pstrdup(NameStr(column->attname)));
    }
    return names;
}

List* key_column_names(Oid relid) {
    Relation rel = table_open(relid, AccessShareLock);
    List* names = key_column_names(rel);
    table_close(rel, AccessShareLock);
    return names;
}

} // namespace interlock

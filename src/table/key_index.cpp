#include "table/key_index.h"

#include "server/scope.h"
#include "table/column.h"
#include "table/name.h"
#include "table/relation_code.h"

namespace interlock::inline table {

static bool all_not_null(Relation rel, Form_pg_index index) {
    for (int i = 0; i < index->indnkeyatts; i++) {
        AttrNumber attnum = index->indkey.values[i];
        if (attnum <= 0 || !has_no_nulls(RelationGetDescr(rel), attnum))
            return false;
    }
    return true;
}

static bool is_btree(Oid index) {
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
    if (!HeapTupleIsValid(tuple))
        return false;
    Oid method = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relam;
    ReleaseSysCache(tuple);
    return method == BTREE_AM_OID;
}

static const oidvector* index_oids(HeapTuple tuple, AttrNumber attribute) {
    bool is_null;
    Datum value = SysCacheGetAttr(INDEXRELID, tuple, attribute, &is_null);
    return reinterpret_cast<const oidvector*>(DatumGetPointer(value));
}

// A condition of ours compares by the collation of the column. Where that takes more values for
// equal than the index does, two rows could meet it.
static bool compares_as_columns(Relation rel, HeapTuple tuple) {
    auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
    const oidvector* collations = index_oids(tuple, Anum_pg_index_indcollation);
    for (int i = 0; i < index->indnkeyatts; i++) {
        Oid collation =
            TupleDescAttr(RelationGetDescr(rel), index->indkey.values[i] - 1)->attcollation;
        if (collation != collations->values[i] && OidIsValid(collation) &&
            !get_collation_isdeterministic(collation))
            return false;
    }
    return true;
}

// Whether the index names exactly one row at every moment.
static bool is_unique_key(Relation rel, HeapTuple tuple) {
    auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
    return index->indisunique && index->indisvalid && index->indimmediate &&
           heap_attisnull(tuple, Anum_pg_index_indpred, nullptr) && is_btree(index->indexrelid) &&
           all_not_null(rel, index) && compares_as_columns(rel, tuple);
}

// The first of them is the primary key, then the narrowest (the oldest of several). The indexes are
// not opened: another transaction may have locked one.
static int width_of(HeapTuple tuple) {
    auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
    return index->indisprimary ? 0 : index->indnkeyatts;
}

static List* unique_keys(Relation rel) {
    List* keys = NIL;
    List* indexes = RelationGetIndexList(rel); // in the order of their oids
    ListCell* cell;
    foreach (cell, indexes) {
        HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));
        if (!HeapTupleIsValid(tuple))
            continue;
        if (is_unique_key(rel, tuple)) {
            int place = 0;
            while (place < list_length(keys) &&
                   width_of(static_cast<HeapTuple>(list_nth(keys, place))) <= width_of(tuple))
                place++;
            keys = list_insert_nth(keys, place, heap_copytuple(tuple));
        }
        ReleaseSysCache(tuple);
    }
    list_free(indexes);
    return keys;
}

static UniqueKey read_key(HeapTuple tuple) {
    auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
    const oidvector* classes = index_oids(tuple, Anum_pg_index_indclass);
    UniqueKey key = {};
    key.index = index->indexrelid;
    key.count = index->indnkeyatts;
    key.columns = static_cast<KeyColumn*>(palloc0(sizeof(KeyColumn) * key.count));
    for (int i = 0; i < key.count; i++) {
        key.columns[i].attnum = index->indkey.values[i];
        key.columns[i].opclass = classes->values[i];
        key.attnums = bms_add_member(key.attnums, key.columns[i].attnum);
    }
    return key;
}

static void load_key_column(const TableInfo* info, KeyColumn* key) {
    Oid family = get_opclass_family(key->opclass);
    Oid input_type = get_opclass_input_type(key->opclass);
    Form_pg_attribute attribute = TupleDescAttr(info->columns, key->attnum - 1);
    key->type = getBaseType(attribute->atttypid);
    key->collation = attribute->attcollation;

    Oid input_function;
    getTypeInputInfo(key->type, &input_function, &key->io_parameter);
    fmgr_info_cxt(input_function, &key->input.kept, info->memory);
    key->input.runs_code = reading_runs_code(key->type);
    fmgr_info_cxt(get_opfamily_proc(family, input_type, input_type, BTORDER_PROC), &key->compare,
                  info->memory);
    key->equals = get_opfamily_member(family, input_type, input_type, BTEqualStrategyNumber);
    fmgr_info_cxt(get_opcode(key->equals), &key->equal, info->memory);
}

static void load_key_columns(const TableInfo* info, const UniqueKey* key) {
    in_context(info->memory, [&] {
        for (int i = 0; i < key->count; i++)
            load_key_column(info, &key->columns[i]);
        return 0;
    });
    key->loaded = true;
}

static bool is_known(const TableInfo* info, const UniqueKey& key) {
    if (key.index == info->key.index || bms_equal(key.attnums, info->key.attnums))
        return true;
    for (int i = 0; i < info->other_key_count; i++)
        if (bms_equal(key.attnums, info->other_keys[i].attnums))
            return true;
    return false;
}

static bool has_members(const TableInfo* info, const UniqueKey& key, JsonbContainer* object) {
    if (JsonContainerSize(object) != static_cast<uint32>(key.count))
        return false;
    for (int i = 0; i < key.count; i++) {
        const char* name = column_name(info, key.columns[i].attnum);
        JsonbValue member;
        if (getKeyJsonValueFromContainer(object, name, strlen(name), &member) == nullptr)
            return false;
    }
    return true;
}

void load_key(TableInfo* info, Relation rel) {
    List* keys = unique_keys(rel);
    if (keys == NIL)
        return;
    info->key = read_key(static_cast<HeapTuple>(linitial(keys)));
    load_key_columns(info, &info->key);
    info->key_sources = sources_of(info->columns, info->key.attnums);
}

void load_other_keys(TableInfo* info, Relation rel) {
    List* keys = unique_keys(rel);
    if (list_length(keys) < 2)
        return;
    info->other_keys = static_cast<UniqueKey*>(palloc0(sizeof(UniqueKey) * list_length(keys)));
    ListCell* cell;
    foreach (cell, keys) {
        UniqueKey key = read_key(static_cast<HeapTuple>(lfirst(cell)));
        if (is_known(info, key) || bms_overlap(key.attnums, info->maintained))
            continue;
        info->other_keys[info->other_key_count++] = key;
        info->other_key_columns = bms_add_members(info->other_key_columns, key.attnums);
        info->other_key_columns =
            bms_join(info->other_key_columns, sources_of(info->columns, key.attnums));
    }
}

// The first for which fits(key) is true, ready to be used.
template <typename Fits>
static const UniqueKey* first_key(const TableInfo* info, Fits&& fits) {
    if (fits(info->key))
        return &info->key;
    for (int i = 0; i < info->other_key_count; i++) {
        const UniqueKey* key = &info->other_keys[i];
        if (!fits(*key))
            continue;
        if (!key->loaded)
            load_key_columns(info, key);
        return key;
    }
    return nullptr;
}

const UniqueKey* find_key(const TableInfo* info, JsonbContainer* object) {
    return first_key(info, [&](const UniqueKey& key) { return has_members(info, key, object); });
}

const UniqueKey* find_key(const TableInfo* info, const Bitmapset* columns) {
    return first_key(info, [&](const UniqueKey& key) {
        return key.count > 0 && bms_equal(key.attnums, columns);
    });
}

const char* list_of_columns(const TableInfo* info, const UniqueKey& key) {
    StringInfoData list;
    initStringInfo(&list);
    for (int i = 0; i < key.count; i++)
        appendStringInfo(&list, "%s\"%s\"", i == 0 ? "(" : ", ",
                         column_name(info, key.columns[i].attnum));
    appendStringInfoChar(&list, ')');
    return list.data;
}

const char* list_of_keys(const TableInfo* info) {
    StringInfoData list;
    initStringInfo(&list);
    appendStringInfoString(&list, list_of_columns(info, info->key));
    for (int i = 0; i < info->other_key_count; i++)
        appendStringInfo(&list, ", %s", list_of_columns(info, info->other_keys[i]));
    return list.data;
}

void require_key(Relation rel, const TableInfo* info) {
    if (info->key.count == 0)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("table \"%s\" has no key that names one row", RelationGetRelationName(rel)),
             errhint("Add a primary key, or a unique index over columns that are NOT NULL; not a "
                     "deferrable or a partial one.")));
}

List* key_column_names(Relation rel) {
    List* keys = unique_keys(rel);
    List* names = NIL;
    if (keys == NIL)
        return NIL;
    auto* index =
        reinterpret_cast<Form_pg_index>(GETSTRUCT(static_cast<HeapTuple>(linitial(keys))));
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

} // namespace interlock::inline table

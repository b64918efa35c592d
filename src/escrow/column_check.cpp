#include "escrow/column_check.h"

#include "escrow/journal.h"
#include "ownership/ownership.h"
#include "table/facet.h"

namespace interlock::escrow {

[[noreturn]] static void refuse_table(Relation rel, const char* reason) {
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("table \"%s\" cannot have escrow counters: %s",
                           RelationGetRelationName(rel), reason)));
}

// The column, and those that are generated of it.
static Bitmapset* columns_of_value(TupleDesc columns, AttrNumber attnum) {
    Bitmapset* found = bms_make_singleton(attnum);
    for (int column = 1; column <= columns->natts; column++)
        if (bms_is_member(attnum, sources_of(columns, bms_make_singleton(column))))
            found = bms_add_member(found, column);
    return found;
}

// An expression may have the value, too.
static bool may_be_over(TupleDesc columns, HeapTuple tuple, const Bitmapset* of_value) {
    auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
    for (int i = 0; i < index->indnatts; i++)
        if (index->indkey.values[i] == 0 || bms_is_member(index->indkey.values[i], of_value))
            return true;
    bool is_null;
    Datum predicate = SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indpred, &is_null);
    return !is_null && bms_overlap(columns_in(columns, TextDatumGetCString(predicate)), of_value);
}

static bool is_indexed_uniquely(Relation rel, const Bitmapset* of_value) {
    bool found = false;
    ListCell* cell;
    foreach (cell, RelationGetIndexList(rel)) {
        HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(cell)));
        if (!HeapTupleIsValid(tuple))
            continue;
        auto* index = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
        found = found || ((index->indisunique || index->indisexclusion) &&
                          may_be_over(RelationGetDescr(rel), tuple, of_value));
        ReleaseSysCache(tuple);
    }
    return found;
}

static bool is_foreign_key(Relation rel, const Bitmapset* of_value) {
    ListCell* cell;
    foreach (cell, RelationGetFKeyList(rel)) {
        auto* key = static_cast<ForeignKeyCacheInfo*>(lfirst(cell));
        for (int i = 0; i < key->nkeys; i++)
            if (bms_is_member(key->conkey[i], of_value))
                return true;
    }
    return false;
}

void check_table_kind(Relation rel, const TableInfo* info) {
    if (rel->rd_rel->relkind != RELKIND_RELATION || rel->rd_rel->relispartition)
        refuse_table(rel, "it is partitioned, or a partition");
    if (rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
        refuse_table(rel, "it is temporary or unlogged");
    require_key(rel, info);
    for (int i = 0; i < info->key.count; i++)
        if (!may_name_counter(info, info->key.columns[i].attnum))
            refuse_table(rel, psprintf("column \"%s\" of its key is not an integer, a uuid, or a "
                                       "text of a deterministic collation, or is generated",
                                       column_name(info, info->key.columns[i].attnum)));
}

void check_column(Relation rel, const TableInfo* info, AttrNumber attnum) {
    Form_pg_attribute attribute = TupleDescAttr(info->columns, attnum - 1);
    const Bitmapset* of_value = columns_of_value(info->columns, attnum);
    const char* reason = nullptr;
    if (!has_no_nulls(info->columns, attnum))
        reason = "it may be null";
    else if (attribute->attgenerated != '\0' || attribute->attidentity != '\0')
        reason = "it is generated";
    else if (is_indexed_uniquely(rel, of_value) || is_foreign_key(rel, of_value))
        reason = "it is in a key, or in a unique index or one that may be over it";
    else if (bms_is_member(attnum, info->maintained))
        reason = "it is a version, or belongs to a marker";
    else if (const ownership::ColumnRule* rule = ownership::rule_of(info, attnum);
             rule != nullptr && rule->access != ownership::Access::kFree)
        reason = "it has an owner, or is shared"; // folds are no writer's
    if (reason != nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("column \"%s\" of table \"%s\" cannot have escrow counters: %s",
                               column_name(info, attnum), RelationGetRelationName(rel), reason)));
    require_use(rel, info, attnum, ColumnUse::kMerged);
}

} // namespace interlock::escrow

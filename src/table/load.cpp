#include "table/load.h"

#include "server/scope.h"
#include "table/column.h"
#include "table/facet.h"
#include "table/key_index.h"
#include "table/last_word.h"
#include "table/name.h"
#include "table/populate.h"
#include "table/relation_code.h"

namespace interlock::inline table {

static bool some_column_runs_code(TupleDesc columns) {
    for (int i = 0; i < columns->natts; i++) {
        Form_pg_attribute attribute = TupleDescAttr(columns, i);
        if (!attribute->attisdropped && reading_runs_code(attribute->atttypid))
            return true;
    }
    return false;
}

static void load_populate(TableInfo* info) {
    prepare_populate(&info->populate.kept, info->columns->tdtypeid, info->memory);
    info->populate.runs_code = some_column_runs_code(info->columns);
}

// Read from the catalog. The relation cache has the key as well, and the partition's condition: but
// it plans their expressions, which runs code of the owner with the caller's rights.
static void add_partition_key(TableInfo* info, Oid parent) {
    HeapTuple tuple = SearchSysCache1(PARTRELID, ObjectIdGetDatum(parent));
    if (!HeapTupleIsValid(tuple))
        return;
    auto* form = reinterpret_cast<Form_pg_partitioned_table>(GETSTRUCT(tuple));
    Bitmapset* offsets = nullptr;
    for (int i = 0; i < form->partnatts; i++)
        offsets =
            bms_add_member(offsets, form->partattrs.values[i] - FirstLowInvalidHeapAttributeNumber);
    bool is_null;
    Datum expressions =
        SysCacheGetAttr(PARTRELID, tuple, Anum_pg_partitioned_table_partexprs, &is_null);
    if (!is_null)
        pull_varattnos(static_cast<Node*>(stringToNode(TextDatumGetCString(expressions))), 1,
                       &offsets);
    ReleaseSysCache(tuple);
    for (int bit = -1; (bit = bms_next_member(offsets, bit)) >= 0;) {
        if (bit + FirstLowInvalidHeapAttributeNumber == InvalidAttrNumber) { // the whole row
            info->partition_columns =
                bms_add_range(info->partition_columns, 1, info->columns->natts);
            return;
        }
        char* name = get_attname(parent, bit + FirstLowInvalidHeapAttributeNumber, true);
        AttrNumber column = name != nullptr ? find_attribute(info->columns, name) : 0;
        if (column != InvalidAttrNumber)
            info->partition_columns = bms_add_member(info->partition_columns, column);
    }
}

static void load_partition_columns(TableInfo* info, Relation rel) {
    if (!rel->rd_rel->relispartition || info->first_check == nullptr)
        return;
    info->partition_root = root_of(rel);
    ListCell* cell;
    foreach (cell, get_partition_ancestors(RelationGetRelid(rel)))
        add_partition_key(info, lfirst_oid(cell));
}

TableInfo* load_table_info(Relation rel) {
    MemoryContext memory =
        AllocSetContextCreate(CurrentMemoryContext, "interlock relation", ALLOCSET_SMALL_SIZES);
    return in_context(memory, [&] {
        auto* info = static_cast<TableInfo*>(palloc0(sizeof(TableInfo)));
        info->relid = RelationGetRelid(rel);
        info->memory = memory;
        info->columns = CreateTupleDescCopyConstr(RelationGetDescr(rel));
        // Copied before any catalog is read: an invalidation on the way would free the original.
        TriggerDesc* triggers = CopyTriggerDesc(rel->trigdesc);
        info->distribution = distribution_of(info->relid);
        load_code(info, rel, triggers);
        load_key(info, rel);
        load_populate(info);
        load_parts(info, rel, triggers);
        load_other_keys(info, rel);
        load_later_triggers(info, triggers);
        load_partition_columns(info, rel);
        if (rel->rd_rel->relpersistence != RELPERSISTENCE_TEMP)
            info->counted_as =
                OidIsValid(info->partition_root) ? info->partition_root : info->relid;
        return info;
    });
}

} // namespace interlock::inline table

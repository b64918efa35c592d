#include "children/foreign_key.h"

namespace interlock::children {

// Zero for what is no list of columns.
static int read_numbers(HeapTuple tuple, AttrNumber attribute, TupleDesc columns,
                        AttrNumber* numbers) {
    bool is_null;
    Datum value = heap_getattr(tuple, attribute, columns, &is_null);
    if (is_null)
        return 0;
    ArrayType* array = DatumGetArrayTypeP(value);
    int count = ARR_NDIM(array) == 1 ? ARR_DIMS(array)[0] : 0;
    if (count > INDEX_MAX_KEYS)
        return 0;
    memcpy(numbers, ARR_DATA_PTR(array), sizeof(AttrNumber) * count);
    return count;
}

static bool read_foreign_key(HeapTuple tuple, TupleDesc columns, ForeignKey* key) {
    auto* constraint = reinterpret_cast<Form_pg_constraint>(GETSTRUCT(tuple));
    if (constraint->contype != CONSTRAINT_FOREIGN || is_of_period(constraint))
        return false;
    key->parent = constraint->confrelid;
    key->count = read_numbers(tuple, Anum_pg_constraint_conkey, columns, key->columns);
    return key->count > 0 &&
           read_numbers(tuple, Anum_pg_constraint_confkey, columns, key->parents) == key->count;
}

void each_foreign_key(Oid child, VisitForeignKey visit, void* closure) {
    ScanKeyData scan_key;
    ScanKeyInit(&scan_key, Anum_pg_constraint_conrelid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(child));
    Relation catalog = table_open(ConstraintRelationId, AccessShareLock);
    SysScanDesc scan =
        systable_beginscan(catalog, ConstraintRelidTypidNameIndexId, true, nullptr, 1, &scan_key);
    HeapTuple tuple;
    ForeignKey key;
    while (HeapTupleIsValid(tuple = systable_getnext(scan)))
        if (read_foreign_key(tuple, RelationGetDescr(catalog), &key))
            visit(closure, key);
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
}

void add_column(StringInfo list, const char* name) {
    appendStringInfo(list, "%s%s", list->len > 0 ? ", " : "", quote_identifier(name));
}

} // namespace interlock::children

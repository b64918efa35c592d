// The objects that an object depends on, from pg_depend.
#pragma once

#include "server/server.h"

namespace interlock::inline table {

// Calls visit(relid, column) for each relation or column that the object depends on. For a whole
// relation the column is 0. Waits for no lock.
template <typename Visit>
void each_needed_relation(Oid class_id, Oid object, Visit&& visit) {
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], Anum_pg_depend_classid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(class_id));
    ScanKeyInit(&keys[1], Anum_pg_depend_objid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(object));
    Relation catalog = table_open(DependRelationId, AccessShareLock);
    SysScanDesc scan =
        systable_beginscan(catalog, DependDependerIndexId, true, nullptr, lengthof(keys), keys);
    HeapTuple tuple;
    while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
        auto* dependency = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
        if (dependency->refclassid == RelationRelationId)
            visit(dependency->refobjid, static_cast<AttrNumber>(dependency->refobjsubid));
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
}

} // namespace interlock::inline table

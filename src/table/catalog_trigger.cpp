#include "table/catalog_trigger.h"

#include "table/trigger.h"

namespace interlock::inline table {

CatalogTriggers::CatalogTriggers(Oid relid) {
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(relid));
    catalog_ = table_open(TriggerRelationId, AccessShareLock);
    index_ = index_open(TriggerRelidNameIndexId, AccessShareLock);
    scan_ = systable_beginscan_ordered(catalog_, index_, nullptr, OidIsValid(relid) ? 1 : 0, &key);
}

bool CatalogTriggers::next() {
    CHECK_FOR_INTERRUPTS();
    row_ = systable_getnext_ordered(scan_, ForwardScanDirection);
    if (!HeapTupleIsValid(row_)) {
        systable_endscan_ordered(scan_);
        index_close(index_, AccessShareLock);
        table_close(catalog_, AccessShareLock);
        return false;
    }
    auto* form = reinterpret_cast<Form_pg_trigger>(GETSTRUCT(row_));
    table = form->tgrelid;
    trigger = {};
    trigger.tgoid = form->oid;
    trigger.tgname = NameStr(form->tgname);
    trigger.tgfoid = form->tgfoid;
    trigger.tgtype = form->tgtype;
    trigger.tgenabled = form->tgenabled;
    trigger.tgisclone = OidIsValid(form->tgparentid);
    trigger.tgconstrrelid = form->tgconstrrelid;
    trigger.tgnargs = form->tgnargs;
    return true;
}

bool CatalogTriggers::read_arguments() {
    TupleDesc columns = RelationGetDescr(catalog_);
    bool no_arguments, no_condition;
    Datum arguments = heap_getattr(row_, Anum_pg_trigger_tgargs, columns, &no_arguments);
    Datum condition = heap_getattr(row_, Anum_pg_trigger_tgqual, columns, &no_condition);
    if ((!no_arguments && toast_raw_datum_size(arguments) > kMostArgumentBytes) ||
        (!no_condition && toast_raw_datum_size(condition) > kMostArgumentBytes))
        return false;
    int count = argument_count(&trigger);
    trigger.tgargs = static_cast<char**>(palloc(sizeof(char*) * (count + 1)));
    char* at = VARDATA_ANY(DatumGetByteaPP(arguments)); // each ends with a zero byte
    for (int i = 0; i < count; i++) {
        trigger.tgargs[i] = at;
        at += strlen(at) + 1;
    }
    trigger.tgqual = no_condition ? nullptr : TextDatumGetCString(condition);
    return true;
}

} // namespace interlock::inline table

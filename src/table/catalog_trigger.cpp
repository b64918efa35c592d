#include "table/catalog_trigger.h"

#include "table/trigger.h"

namespace interlock::inline table {

CatalogTriggers begin_triggers(Oid relid) {
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_trigger_tgrelid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(relid));
    CatalogTriggers triggers = {};
    triggers.catalog = table_open(TriggerRelationId, AccessShareLock);
    triggers.index = index_open(TriggerRelidNameIndexId, AccessShareLock);
    triggers.scan = systable_beginscan_ordered(triggers.catalog, triggers.index, nullptr,
                                               OidIsValid(relid) ? 1 : 0, &key);
    return triggers;
}

bool next_trigger(CatalogTriggers* triggers, HeapTuple* row, Oid* relid, Trigger* trigger) {
    *row = systable_getnext_ordered(triggers->scan, ForwardScanDirection);
    if (!HeapTupleIsValid(*row))
        return false;
    auto* form = reinterpret_cast<Form_pg_trigger>(GETSTRUCT(*row));
    *relid = form->tgrelid;
    *trigger = {};
    trigger->tgoid = form->oid;
    trigger->tgname = NameStr(form->tgname);
    trigger->tgfoid = form->tgfoid;
    trigger->tgtype = form->tgtype;
    trigger->tgenabled = form->tgenabled;
    trigger->tgisclone = OidIsValid(form->tgparentid);
    trigger->tgconstrrelid = form->tgconstrrelid;
    trigger->tgnargs = form->tgnargs;
    return true;
}

void end_triggers(CatalogTriggers* triggers) {
    systable_endscan_ordered(triggers->scan);
    index_close(triggers->index, AccessShareLock);
    table_close(triggers->catalog, AccessShareLock);
}

bool read_arguments(const CatalogTriggers& triggers, HeapTuple row, Trigger* trigger) {
    TupleDesc columns = RelationGetDescr(triggers.catalog);
    bool no_arguments, no_condition;
    Datum arguments = heap_getattr(row, Anum_pg_trigger_tgargs, columns, &no_arguments);
    Datum condition = heap_getattr(row, Anum_pg_trigger_tgqual, columns, &no_condition);
    if ((!no_arguments && toast_raw_datum_size(arguments) > kMostArgumentBytes) ||
        (!no_condition && toast_raw_datum_size(condition) > kMostArgumentBytes))
        return false;
    trigger->tgargs = arguments_in(DatumGetByteaPP(arguments), argument_count(trigger));
    trigger->tgqual = no_condition ? nullptr : TextDatumGetCString(condition);
    return true;
}

char** arguments_in(const bytea* stored, int count) {
    auto** arguments = static_cast<char**>(palloc(sizeof(char*) * (count + 1)));
    const char* at = VARDATA_ANY(stored);
    for (int i = 0; i < count; i++) {
        arguments[i] = const_cast<char*>(at);
        at += strlen(at) + 1;
    }
    return arguments;
}

} // namespace interlock::inline table

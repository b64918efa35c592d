#include "table/trigger_state.h"

#include "table/plan.h"

namespace interlock::inline table {

namespace {

struct TriggerState {
    Oid relid;
    char enabled;
};

} // namespace

// In the catalog: ALTER TABLE would require the ownership of each partition.
static void set_state(Relation catalog, Oid trigger, char enabled) {
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(trigger));
    SysScanDesc scan = systable_beginscan(catalog, TriggerOidIndexId, true, nullptr, 1, &key);
    HeapTuple found = systable_getnext(scan);
    if (HeapTupleIsValid(found)) {
        HeapTuple changed = heap_copytuple(found);
        reinterpret_cast<Form_pg_trigger>(GETSTRUCT(changed))->tgenabled = enabled;
        CatalogTupleUpdate(catalog, &changed->t_self, changed);
    }
    systable_endscan(scan);
}

List* trigger_states(Oid relid, const char* name) {
    run_command(psprintf(
        "SELECT t.tgrelid, t.tgenabled FROM pg_catalog.pg_trigger t "
        "WHERE t.tgname OPERATOR(pg_catalog.=) %s AND t.tgenabled OPERATOR(pg_catalog.<>) 'O' "
        "AND (t.tgrelid OPERATOR(pg_catalog.=) %u OR t.tgparentid OPERATOR(pg_catalog.<>) 0 AND "
        "t.tgrelid OPERATOR(pg_catalog.=) ANY "
        "(SELECT p.relid::pg_catalog.oid FROM pg_catalog.pg_partition_tree(%u) p))",
        quote_literal_cstr(name), relid, relid));
    const SPITupleTable* rows = SPI_tuptable;
    List* states = NIL;
    for (uint64 i = 0; i < rows->numvals; i++) {
        bool is_null;
        auto* state = static_cast<TriggerState*>(palloc(sizeof(TriggerState)));
        state->relid = DatumGetObjectId(SPI_getbinval(rows->vals[i], rows->tupdesc, 1, &is_null));
        state->enabled = DatumGetChar(SPI_getbinval(rows->vals[i], rows->tupdesc, 2, &is_null));
        states = lappend(states, state);
    }
    return states;
}

void restore_trigger_states(const char* name, const List* states) {
    if (states == NIL)
        return;
    CommandCounterIncrement();
    Relation catalog = table_open(TriggerRelationId, RowExclusiveLock);
    ListCell* cell;
    foreach (cell, states) {
        const auto* state = static_cast<const TriggerState*>(lfirst(cell));
        Oid trigger = get_trigger_oid(state->relid, name, true);
        if (!OidIsValid(trigger))
            continue;
        set_state(catalog, trigger, state->enabled);
        CacheInvalidateRelcacheByRelid(state->relid);
    }
    table_close(catalog, RowExclusiveLock);
    CommandCounterIncrement();
}

void drop_trigger(Oid relid, const char* table, const char* name) {
    if (OidIsValid(get_trigger_oid(relid, name, true)))
        run_command(psprintf("DROP TRIGGER %s ON %s", quote_identifier(name), table));
}

void replace_trigger(Oid relid, const char* name, const char* command) {
    List* states = trigger_states(relid, name);
    run_command(command);
    restore_trigger_states(name, states);
}

} // namespace interlock::inline table

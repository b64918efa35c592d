// What the views escrow and reservations call.

#include "escrow/journal.h"
#include "escrow/memory.h"
#include "server/arguments.h"
#include "server/caller.h"
#include "server/result_row.h"
#include "table/catalog_trigger.h"
#include "table/own_table.h"

using namespace interlock;

namespace {

// The table is not locked: it and its columns may be gone.
bool may_read_table(Oid rel) {
    bool is_missing = false;
    return pg_class_aclcheck_ext(rel, GetUserId(), ACL_SELECT, &is_missing) == ACLCHECK_OK;
}

bool may_read_column(Oid rel, AttrNumber attnum) {
    bool is_missing = false;
    return pg_attribute_aclcheck_ext(rel, attnum, GetUserId(), ACL_SELECT, &is_missing) ==
           ACLCHECK_OK;
}

bool is_trigger_of(const Trigger* trigger, const char* column) {
    if (argument_count(trigger) <= kKeyColumns)
        return false;
    NameData name;
    name_argument(trigger, kColumn, &name);
    return strcmp(NameStr(name), column) == 0;
}

// The columns that the trigger depends on: the counters' own, and those of their key.
Bitmapset* columns_of_trigger(Oid trigger, Oid rel) {
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], Anum_pg_depend_classid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(TriggerRelationId));
    ScanKeyInit(&keys[1], Anum_pg_depend_objid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(trigger));
    Relation catalog = table_open(DependRelationId, AccessShareLock);
    SysScanDesc scan =
        systable_beginscan(catalog, DependDependerIndexId, true, nullptr, lengthof(keys), keys);
    Bitmapset* columns = nullptr;
    HeapTuple tuple;
    while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
        auto* dependency = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
        if (dependency->refclassid == RelationRelationId && dependency->refobjid == rel &&
            dependency->refobjsubid > 0)
            columns = bms_add_member(columns, dependency->refobjsubid);
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return columns;
}

bool may_read_columns_of(const Trigger* trigger, Oid rel) {
    Bitmapset* columns = columns_of_trigger(trigger->tgoid, rel);
    // Those of a restored dump depend on none, until enable_escrow is called.
    bool may_read = bms_num_members(columns) > argument_count(trigger) - kKeyColumns;
    for (int attnum = -1; may_read && (attnum = bms_next_member(columns, attnum)) >= 0;)
        may_read = may_read_column(rel, static_cast<AttrNumber>(attnum));
    return may_read;
}

// Counters go by values of the columns that their trigger depends on: the table's primary key may
// be another one, and their names may be those of others. With a forged trigger beside it, the
// columns of both.
bool may_read_columns(Oid rel, const char* column) {
    Oid function = own_trigger_function("escrow_trigger");
    bool is_known = false, may_read = true;
    CatalogTriggers triggers = begin_triggers(rel);
    HeapTuple row;
    Oid relid;
    Trigger trigger;
    while (next_trigger(&triggers, &row, &relid, &trigger)) {
        CHECK_FOR_INTERRUPTS();
        if (trigger.tgfoid != function || !read_arguments(triggers, row, &trigger) ||
            !is_trigger_of(&trigger, column))
            continue;
        is_known = true;
        may_read = may_read && may_read_columns_of(&trigger, rel);
    }
    end_triggers(&triggers);
    return is_known && may_read;
}

bool may_read(Oid rel, const char* column) {
    return (may_read_table(rel) || may_read_columns(rel, column)) &&
           check_enable_rls(rel, InvalidOid, true) != RLS_ENABLED;
}

// Any role can call the function with any number. An entry of another epoch, from before a rewrite
// of the table or another trigger, says nothing any more.
bool read_visible_entry(int64 counter, EntryState* state) {
    Oid rel;
    NameData column;
    if (!read_counter(counter, &rel, &column) || get_rel_name(rel) == nullptr)
        return false;
    AttrNumber attnum = get_attnum(rel, NameStr(column));
    return attnum != InvalidAttrNumber && may_read(rel, NameStr(column)) &&
           read_entry(counter, state) && epoch_of(rel, attnum, state->trigger) == state->epoch;
}

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(escrow_entry);
PG_FUNCTION_INFO_V1(may_read_counter);
PG_FUNCTION_INFO_V1(may_end_reservation);

// escrow_entry(counter) -> (inf, sup, folded_at, changed_at), in the smallest steps of the column
Datum escrow_entry(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    EntryState entry = {};
    int64 counter = DatumGetInt64(arguments.required(0, "counter"));
    bool found = read_visible_entry(counter, &entry);
    const FoldTimes& times = entry.times;
    Datum values[4] = {Int64GetDatum(entry.range.inf), Int64GetDatum(entry.range.sup),
                       TimestampTzGetDatum(times.folded_at), TimestampTzGetDatum(times.changed_at)};
    bool nulls[4] = {!found, !found, !found || times.folded_at == 0,
                     !found || times.changed_at == 0};
    return result_row(fcinfo, values, nulls);
}

// may_read_counter(rel, column_name)
Datum may_read_counter(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    PG_RETURN_BOOL(may_read(arguments.relation(0), arguments.name(1, "column_name")));
}

// may_end_reservation(role_name, rel). In a view, whose owner is not the caller.
Datum may_end_reservation(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Oid rel = arguments.relation(1);
    Oid role = get_role_oid(arguments.name(0, "role_name"), true);
    PG_RETURN_BOOL(
        (OidIsValid(role) && acts_for(role)) ||
        (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(rel)) && acts_for(owner_of_table(rel))));
}
}

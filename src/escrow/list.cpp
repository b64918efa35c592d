// What the views escrow and reservations call.

#include "escrow/journal.h"
#include "escrow/memory.h"
#include "server/arguments.h"
#include "server/caller.h"
#include "server/result_row.h"

using namespace interlock;

namespace {

bool may_see(Oid rel, AttrNumber attnum) {
    return (pg_class_aclcheck(rel, GetUserId(), ACL_SELECT) == ACLCHECK_OK ||
            pg_attribute_aclcheck(rel, attnum, GetUserId(), ACL_SELECT) == ACLCHECK_OK) &&
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
    return attnum != InvalidAttrNumber && may_see(rel, attnum) && read_entry(counter, state) &&
           epoch_of(rel, attnum, state->trigger) == state->epoch;
}

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(escrow_entry);
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

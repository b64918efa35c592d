// What the views escrow and reservations call.

#include "escrow/journal.h"
#include "escrow/memory.h"
#include "server/arguments.h"
#include "server/caller.h"
#include "server/result_row.h"
#include "server/scope.h"
#include "table/catalog_trigger.h"
#include "table/dependency.h"
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

// The counters' own column, and those of their key.
Bitmapset* columns_of_trigger(Oid trigger, Oid rel) {
    Bitmapset* columns = nullptr;
    each_needed_relation(TriggerRelationId, trigger, [&](Oid needed, AttrNumber column) {
        if (needed == rel && column > 0)
            columns = bms_add_member(columns, column);
    });
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
    each_trigger(rel, [&](const CatalogTriggers& triggers, HeapTuple row, Oid, Trigger* trigger) {
        if (trigger->tgfoid != function || !may_read)
            return;
        in_scratch([&] {
            if (!read_arguments(triggers, row, trigger) || !is_trigger_of(trigger, column))
                return;
            is_known = true;
            may_read = may_read_columns_of(trigger, rel);
        });
    });
    return is_known && may_read;
}

bool may_read(Oid rel, const char* column) {
    return (may_read_table(rel) || may_read_columns(rel, column)) &&
           check_enable_rls(rel, InvalidOid, true) != RLS_ENABLED;
}

struct Answer {
    struct {
        Oid role;
        Oid rel;
        NameData column;
    } key;
    bool may_read;
};

// Once in a statement for all counters of a column: any role can put thousands of triggers with
// megabytes of arguments on a table of its own.
bool may_read(FunctionCallInfo call, Oid rel, const NameData& column) {
    FmgrInfo* function = call->flinfo;
    if (function->fn_extra == nullptr) {
        HASHCTL control = {};
        control.keysize = sizeof(Answer::key);
        control.entrysize = sizeof(Answer);
        control.hcxt = function->fn_mcxt;
        function->fn_extra = hash_create("interlock readable counters", 16, &control,
                                         HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
    }
    auto* answers = static_cast<HTAB*>(function->fn_extra);
    decltype(Answer::key) key = {GetUserId(), rel, column};
    auto* known = static_cast<Answer*>(hash_search(answers, &key, HASH_FIND, nullptr));
    if (known != nullptr)
        return known->may_read;
    bool answer = may_read(rel, NameStr(column));
    known = static_cast<Answer*>(hash_search(answers, &key, HASH_ENTER, nullptr));
    known->may_read = answer;
    return answer;
}

// Any role can call the function with any number. An entry of another epoch, from before a rewrite
// of the table or another trigger, says nothing any more.
bool read_visible_entry(FunctionCallInfo call, int64 counter, EntryState* state) {
    Oid rel;
    NameData column;
    if (!read_counter(counter, &rel, &column) || get_rel_name(rel) == nullptr)
        return false;
    AttrNumber attnum = get_attnum(rel, NameStr(column));
    return attnum != InvalidAttrNumber && may_read(call, rel, column) &&
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
    bool found = read_visible_entry(fcinfo, counter, &entry);
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
    NameData column;
    namestrcpy(&column, arguments.name(1, "column_name"));
    PG_RETURN_BOOL(may_read(fcinfo, arguments.relation(0), column));
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

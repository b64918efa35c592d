// What the views escrow and reservations call.

#include "escrow/list.h"

#include "escrow/counted_columns.h"
#include "escrow/journal.h"
#include "escrow/memory.h"
#include "server/arguments.h"
#include "server/caller.h"
#include "server/result_row.h"
#include "server/scope.h"
#include "table/catalog_trigger.h"
#include "table/dependency.h"
#include "table/own_table.h"

namespace interlock::escrow {

// The table is not locked: it and its columns may be gone.
static bool may_read_table(Oid rel) {
    bool is_missing = false;
    return pg_class_aclcheck_ext(rel, GetUserId(), ACL_SELECT, &is_missing) == ACLCHECK_OK;
}

static bool may_read_column(Oid rel, AttrNumber attnum) {
    bool is_missing = false;
    return pg_attribute_aclcheck_ext(rel, attnum, GetUserId(), ACL_SELECT, &is_missing) ==
           ACLCHECK_OK;
}

static bool is_trigger_of(const Trigger* trigger, const char* label) {
    if (argument_count(trigger) <= kKeyColumns)
        return false;
    NameData name;
    name_argument(trigger, kColumn, &name);
    return strcmp(NameStr(name), label) == 0;
}

// The counters' own column, and those of their key.
static Bitmapset* columns_of_trigger(Oid trigger, Oid rel) {
    Bitmapset* columns = nullptr;
    each_needed_relation(TriggerRelationId, trigger, [&](Oid needed, AttrNumber column) {
        if (needed == rel && column > 0)
            columns = bms_add_member(columns, column);
    });
    return columns;
}

static bool may_read_columns_of(const Trigger* trigger, Oid rel) {
    Bitmapset* columns = columns_of_trigger(trigger->tgoid, rel);
    // Those of a restored dump depend on none, until enable_escrow is called.
    bool may_read = bms_num_members(columns) > argument_count(trigger) - kKeyColumns;
    for (int attnum = -1; may_read && (attnum = bms_next_member(columns, attnum)) >= 0;)
        may_read = may_read_column(rel, static_cast<AttrNumber>(attnum));
    return may_read;
}

namespace {

// What the triggers say of a column.
struct Seen {
    AttrNumber attnum; // InvalidAttrNumber: it is gone
    bool may_read;
};

} // namespace

// Counters go by values of the columns that their trigger depends on: the table's primary key may
// be another one, and their names may be those of others. With a second, forged trigger, the
// columns of both.
static Seen see_triggers(Oid rel, const char* label) {
    bool is_known = false;
    Seen seen = {get_attnum(rel, label), true};
    each_trigger_of("escrow_trigger", rel, [&](Oid, const Trigger* trigger) {
        CountedColumns columns;
        if (!is_trigger_of(trigger, label))
            return;
        is_known = true;
        seen.may_read = seen.may_read && may_read_columns_of(trigger, rel);
        if (read_counted_columns(rel, trigger, kColumnNumbers, &columns))
            seen.attnum = columns.column;
    });
    seen.may_read = (may_read_table(rel) || (is_known && seen.may_read)) &&
                    check_enable_rls(rel, InvalidOid, true) != RLS_ENABLED;
    return seen;
}

namespace {

struct Answer {
    struct {
        Oid role;
        Oid rel;
        NameData label;
    } key;
    Seen seen;
};

} // namespace

// Once in a statement for all counters of a column.
static Seen see_column(FunctionCallInfo call, Oid rel, const NameData& label) {
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
    decltype(Answer::key) key = {GetUserId(), rel, label};
    auto* known = static_cast<Answer*>(hash_search(answers, &key, HASH_FIND, nullptr));
    if (known != nullptr)
        return known->seen;
    Seen seen = see_triggers(rel, NameStr(label));
    known = static_cast<Answer*>(hash_search(answers, &key, HASH_ENTER, nullptr));
    known->seen = seen;
    return seen;
}

bool may_read_counters(FunctionCallInfo call, Oid rel, const NameData& label) {
    return see_column(call, rel, label).may_read;
}

static Seen seen_of(FunctionCallInfo call) {
    Arguments arguments(call);
    NameData label;
    memset(NameStr(label), 0, NAMEDATALEN);
    namestrcpy(&label, arguments.name(1, "column_name"));
    return see_column(call, arguments.relation(0), label);
}

static bool sees_all() { return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS); }

namespace {

// What a role may see of an entry: its times, or the values, too.
enum class Sight : uint8 { kNothing, kTimes, kAll };

} // namespace

// Any role can call the function with any number. An entry of another epoch, from before a rewrite
// of the table or another trigger, says nothing any more.
static Sight read_visible_entry(FunctionCallInfo call, int64 counter, EntryState* state) {
    Oid rel;
    NameData label;
    if (!read_counter(counter, &rel, &label) || get_rel_name(rel) == nullptr)
        return Sight::kNothing;
    Seen seen = see_column(call, rel, label);
    if (seen.attnum == InvalidAttrNumber || (!seen.may_read && !sees_all()) ||
        !read_entry(counter, state) || epoch_of(rel, seen.attnum, state->trigger) != state->epoch)
        return Sight::kNothing;
    return seen.may_read ? Sight::kAll : Sight::kTimes;
}

extern "C" {
PG_FUNCTION_INFO_V1(escrow_entry);
PG_FUNCTION_INFO_V1(may_read_counter);
PG_FUNCTION_INFO_V1(counted_column);
PG_FUNCTION_INFO_V1(may_end_reservation);

// escrow_entry(counter) -> (inf, sup, folded_at, changed_at), in the smallest steps of the column
Datum escrow_entry(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    EntryState entry = {};
    int64 counter = DatumGetInt64(arguments.required(0, "counter"));
    Sight sight = read_visible_entry(fcinfo, counter, &entry);
    const FoldTimes& times = entry.times;
    Datum values[4] = {Int64GetDatum(entry.range.inf), Int64GetDatum(entry.range.sup),
                       TimestampTzGetDatum(times.folded_at), TimestampTzGetDatum(times.changed_at)};
    bool nulls[4] = {sight != Sight::kAll, sight != Sight::kAll,
                     sight == Sight::kNothing || times.folded_at == 0,
                     sight == Sight::kNothing || times.changed_at == 0};
    return result_row(fcinfo, values, nulls);
}

// may_read_counter(rel, column_name)
Datum may_read_counter(PG_FUNCTION_ARGS) { PG_RETURN_BOOL(seen_of(fcinfo).may_read); }

// counted_column(rel, column_name)
Datum counted_column(PG_FUNCTION_ARGS) {
    AttrNumber attnum = seen_of(fcinfo).attnum;
    if (attnum == InvalidAttrNumber)
        PG_RETURN_NULL();
    PG_RETURN_INT16(attnum);
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

} // namespace interlock::escrow

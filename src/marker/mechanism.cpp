#include "table/mechanism.h"

#include "marker/marker.h"
#include "marker/scan.h"
#include "server/arguments.h"
#include "server/notify.h"
#include "table/catalog_trigger.h"
#include "table/settings_json.h"

namespace interlock::marker {

constexpr const char* kColumns[kMarkerRoles] = {"status_column", "holder_column", "time_column",
                                                "until_column", "reason_column"};

constexpr const char* kNoSweepIndex = "no sweep index";

// By their numbers.
constexpr const char* kTakeOverNames[] = {"expired", "operators", "allow"};

const char* take_over_name(TakeOver take_over) {
    return kTakeOverNames[static_cast<int>(take_over)];
}

bool parse_take_over(const char* name, TakeOver* take_over) {
    for (TakeOver each : {TakeOver::kExpired, TakeOver::kOperators, TakeOver::kAllow})
        if (strcmp(name, take_over_name(each)) == 0) {
            *take_over = each;
            return true;
        }
    return false;
}

static bool names_twice(const MarkerSettings& settings) {
    for (int i = 0; i < kMarkerRoles; i++)
        if (has_name({settings.columns, i}, settings.columns[i]))
            return true;
    return false;
}

bool read_settings(const Trigger* trigger, MarkerSettings* settings) {
    constexpr int kFirstColumn = 2;
    if (argument_count(trigger) < kFirstColumn + kMarkerRoles)
        return false;
    settings->ttl = strtoll(trigger->tgargs[0], nullptr, 10);
    settings->enforce = strcmp(trigger->tgargs[1], "enforce") == 0;
    settings->sweep_index = true;
    settings->take_over = TakeOver::kExpired;
    for (int i = kFirstColumn + kMarkerRoles; i < argument_count(trigger); i++)
        if (!parse_take_over(trigger->tgargs[i], &settings->take_over))
            settings->sweep_index = false;
    bool are_names = true;
    for (int role = 0; role < kMarkerRoles; role++) {
        settings->columns[role] = trigger->tgargs[kFirstColumn + role];
        are_names = are_names && is_name(settings->columns[role]);
    }
    return are_names && !names_twice(*settings) && settings->ttl > 0 &&
           settings->ttl <= kLongestDuration &&
           has_arguments(trigger, trigger_arguments(*settings));
}

List* trigger_arguments(const MarkerSettings& settings) {
    List* arguments = add_argument(NIL, psprintf(INT64_FORMAT " microseconds", settings.ttl));
    arguments = add_argument(arguments, settings.enforce ? "enforce" : "advise");
    arguments = add_names(arguments, {settings.columns, kMarkerRoles});
    if (!settings.sweep_index)
        arguments = add_argument(arguments, kNoSweepIndex);
    if (settings.take_over != TakeOver::kExpired)
        arguments = add_argument(arguments, take_over_name(settings.take_over));
    return arguments;
}

// As set_notify_trigger() makes it.
static Notify read_notify(Oid relid) {
    Notify notify = Notify::kOff;
    each_trigger_of("marker_notify_trigger", relid, [&](Oid, const Trigger* trigger) {
        notify = argument_count(trigger) > 0 ? Notify::kFull : Notify::kOn;
    });
    return notify;
}

static bool is_btree(Oid index) {
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
    if (!HeapTupleIsValid(tuple))
        return false;
    bool btree = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relam == BTREE_AM_OID;
    ReleaseSysCache(tuple);
    return btree;
}

// Whether the sweeper finds deadlines by it: one that enable_marker has made, or of the owner.
static bool serves_sweeps(HeapTuple index, AttrNumber until, AttrNumber status) {
    auto* form = reinterpret_cast<Form_pg_index>(GETSTRUCT(index));
    return form->indisvalid && form->indkey.values[0] == until &&
           (heap_attisnull(index, Anum_pg_index_indpred, nullptr) ||
            is_of_marked_rows(index, status)) &&
           is_btree(form->indexrelid);
}

// Whether there is one; with `of_others` one that enable_marker has not made. Read from the
// catalog: the table is not open. The columns are by role.
static bool has_sweep_index(Oid relid, const char* const* columns, bool of_others) {
    AttrNumber until = get_attnum(relid, columns[kUntil]);
    AttrNumber status = get_attnum(relid, columns[kStatus]);
    if (until == InvalidAttrNumber || status == InvalidAttrNumber)
        return false;
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(relid));
    Relation catalog = table_open(IndexRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, IndexIndrelidIndexId, true, nullptr, 1, &key);
    bool found = false;
    HeapTuple index;
    while (!found && HeapTupleIsValid(index = systable_getnext(scan)))
        found = serves_sweeps(index, until, status) && !(of_others && is_sweep_index(index));
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    return found;
}

static Reading read(Oid relid, const Trigger* trigger, Setting* setting) {
    MarkerSettings settings;
    if (!read_settings(trigger, &settings))
        return Reading::kForged;
    JsonObject arguments;
    arguments.add("ttl", duration_text(settings.ttl));
    arguments.add_flag("enforce", settings.enforce);
    arguments.add("notify", notify_name(read_notify(relid)));
    for (int role = 0; role < kMarkerRoles; role++)
        arguments.add(kColumns[role], settings.columns[role]);
    arguments.add_flag("sweep_index", has_sweep_index(relid, settings.columns, false));
    arguments.add("take_over", take_over_name(settings.take_over));
    setting->arguments = arguments.finish();
    return Reading::kFound;
}

static const Marker* present_on(Relation rel) { return marker_of(table_info(rel)); }

// What becomes of sweep_index => false: an index of the owner stays, and serves.
static bool keeps_index(Relation rel, JsonbContainer* arguments) {
    const char* columns[kMarkerRoles];
    for (int role = 0; role < kMarkerRoles; role++) {
        const JsonbValue* name = member_of(arguments, kColumns[role]);
        columns[role] = name->type == jbvString ? text_at(kColumns[role], name)
                                                : unnamed_column(present_on(rel), role);
    }
    return has_sweep_index(RelationGetRelid(rel), columns, true);
}

static Jsonb* stored_form(Relation rel, const char*, Jsonb* arguments) {
    JsonObject stored;
    each_member(&arguments->root, [&](const char* name, const JsonbValue* value) {
        int role = 0;
        while (role < kMarkerRoles && strcmp(name, kColumns[role]) != 0)
            role++;
        if (value->type == jbvNull && role < kMarkerRoles)
            stored.add(name, unnamed_column(present_on(rel), role));
        else if (value->type == jbvBool && strcmp(name, "sweep_index") == 0)
            stored.add_flag(name, value->val.boolean || keeps_index(rel, &arguments->root));
        else
            stored.add(name, *value);
    });
    return with_stored_notify(stored.finish());
}

extern const Mechanism kMarkerMechanism = {
    .name = "marker",
    .enable = "enable_marker",
    .disable = "disable_marker",
    .distributed_hint =
        "Acquire a lease whose key names the row, or keep the rows to lock in a table that is not "
        "distributed.",
    .read = read,
    .stored_form = stored_form,
};

} // namespace interlock::marker

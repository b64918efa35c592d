#include "marker/marker.h"

#include "server/arguments.h"
#include "server/lone_call.h"
#include "server/scope.h"
#include "table/mechanism.h"
#include "table/row.h"

namespace interlock::marker {

extern "C" {
PG_FUNCTION_INFO_V1(set_holder);

// set_holder(text): the holder as which this transaction writes, until it ends. Null: none.
Datum set_holder(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    const char* holder = arguments.is_null(0) ? "" : check_holder(arguments.string(0, "holder"));
    (void)set_config_option("interlock.holder", holder, PGC_INTERNAL, PGC_S_SESSION,
                            GUC_ACTION_LOCAL, true, 0, false);
    if (holder[0] != '\0')
        warn_if_alone(fcinfo, "the holder is already reset",
                      "Call the function after BEGIN, in the transaction that writes.");
    PG_RETURN_VOID();
}
}

// The setting is of class "internal": only this module sets it, always for a transaction or a nest
// inside one, so that the server itself undoes it at rollback to a savepoint and at the end.
static char* holder_setting = nullptr;

static const MarkerCall* current_call = nullptr;

bool fits_role(int role, Oid type) {
    switch (role) {
    case kStatus:
        return type == INT2OID || type == INT4OID || type == INT8OID;
    case kTime:
        return type == TIMESTAMPTZOID || type == TIMESTAMPOID;
    case kUntil:
        return type == TIMESTAMPTZOID;
    default: // the types whose values are read and written as text, byte for byte
        return type == TEXTOID || type == VARCHAROID;
    }
}

void define_marker_settings() {
    DefineCustomStringVariable(
        "interlock.holder", "Shows the holder that the current transaction writes as.",
        "interlock.set_holder() sets it for the rest of the transaction.", &holder_setting, "",
        PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE, nullptr, nullptr, nullptr);
}

bool same_holder(const char* left, const char* right) {
    return left != nullptr && right != nullptr && strcmp(left, right) == 0;
}

const char* current_holder() {
    return holder_setting != nullptr && holder_setting[0] != '\0' ? holder_setting : nullptr;
}

void run_marker_call(const WritingFunction& function, void (*body)(void* closure), void* closure) {
    const auto& call = static_cast<const MarkerCall&>(function);
    with_settings([&] {
        (void)set_config_option("interlock.holder", call.holder, PGC_INTERNAL, PGC_S_SESSION,
                                GUC_ACTION_SAVE, true, 0, false);
        with_current(&current_call, &call, [&] { body(closure); });
    });
}

const MarkerCall* firing_call(const Marker* marker) {
    if (current_call == nullptr || current_call->root != marker->root ||
        trigger_depth() != current_call->trigger_depth + 1)
        return nullptr;
    return current_call;
}

const char* check_holder(const char* holder, const char* argument) {
    if (holder[0] == '\0')
        refuse_empty(argument, "Give the name of the user or program that edits, such as 'anna'.");
    if (strlen(holder) > kHolderBytes)
        refuse_long(argument, kHolderBytes);
    return holder;
}

static void find_column(TupleDesc columns, Marker* marker, int role) {
    MarkerColumn* column = &marker->columns[role];
    column->attnum = find_attribute(columns, NameStr(column->name));
    if (column->attnum == InvalidAttrNumber) {
        marker->usable = false;
        return;
    }
    Form_pg_attribute attribute = TupleDescAttr(columns, column->attnum - 1);
    column->type = attribute->atttypid;
    column->typmod = attribute->atttypmod;
    column->not_null = attribute->attnotnull;
    bool fits = fits_role(role, attribute->atttypid);
    if (fits && role == kHolder)
        marker->compares_bytes = get_collation_isdeterministic(attribute->attcollation);
    marker->usable = marker->usable && fits;
    marker->attnums = bms_add_member(marker->attnums, column->attnum);
}

Marker* read_marker(Oid relid, TupleDesc columns, const Trigger* trigger) {
    auto* marker = static_cast<Marker*>(palloc0(sizeof(Marker)));
    static_cast<OwnTrigger&>(*marker) = own_trigger(relid, trigger);
    MarkerSettings settings;
    marker->well_formed = marker->usable = read_settings(trigger, &settings);
    if (!marker->well_formed)
        return marker;
    marker->ttl = settings.ttl;
    marker->enforce = settings.enforce;
    marker->take_over = settings.take_over;
    for (int role = 0; role < kMarkerRoles; role++) {
        namestrcpy(&marker->columns[role].name, settings.columns[role]);
        find_column(columns, marker, role);
    }
    return marker;
}

const Marker* usable_marker(Relation rel, const TableInfo* info) {
    require_own(rel, info, marker_of(info), "enable_marker");
    if (!marker_of(info)->usable)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("a marker column of table \"%s\" is gone or has another type",
                        RelationGetRelationName(rel)),
                 errhint("The table's owner calls interlock.enable_marker again with the current "
                         "names of the columns and the other settings, which SELECT "
                         "interlock.configuration(%s) shows.",
                         quote_literal_cstr(qualified_name(rel)))));
    return marker_of(info);
}

const Marker* require_marker(Relation rel, const TableInfo* info) {
    if (marker_of(info) == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("table \"%s\" has no markers", RelationGetRelationName(rel)),
                        errhint("Its owner can enable them: %s", call_for("enable_marker", rel))));
    const Marker* marker = usable_marker(rel, info);
    if (!trigger_fires(marker->enabled))
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("markers of table \"%s\" are off: their trigger does not fire in this session",
                    RelationGetRelationName(rel)),
             errhint("Enable the trigger and leave session_replication_role at origin.")));
    return marker;
}

static TimestampTz time_value(const MarkerColumn& column, const RowValues& row) {
    NullableDatum time = row[column.attnum];
    if (time.isnull)
        return DT_NOBEGIN;
    return column.type == TIMESTAMPOID ? time_in_zone(DatumGetTimestamp(time.value))
                                       : DatumGetTimestampTz(time.value);
}

MarkerState marker_state(const Marker* marker, TupleDesc columns, HeapTuple tuple,
                         TimestampTz clock) {
    return marker_state(marker, values_of_row(columns, tuple), clock);
}

MarkerState marker_state(const Marker* marker, const RowValues& row, TimestampTz clock) {
    MarkerState state = marker_status(marker, row, clock);
    NullableDatum holder = row[marker->columns[kHolder].attnum];
    if (state.set && !holder.isnull)
        state.holder = TextDatumGetCString(holder.value);
    return state;
}

MarkerState marker_status(const Marker* marker, const RowValues& row, TimestampTz clock) {
    const MarkerColumn& status_column = marker->columns[kStatus];
    NullableDatum status = row[status_column.attnum];
    MarkerState state = {};
    int64 value = status.isnull ? 0 : integer_of(status_column.type, status.value);
    state.set = value == 1;
    state.foreign = value != 0 && value != 1;
    state.since = time_value(marker->columns[kTime], row);
    state.until = time_value(marker->columns[kUntil], row);
    state.live = state.set && state.until > clock;
    return state;
}

Datum marker_time(const MarkerColumn& column, TimestampTz time) {
    Timestamp value = time;
    if (column.type == TIMESTAMPOID)
        value = DatumGetTimestamp(
            DirectFunctionCall1(timestamptz_timestamp, TimestampTzGetDatum(time)));
    round_timestamp(&value, column.typmod);
    return TimestampGetDatum(value);
}

Datum marker_text(const MarkerColumn& column, const char* text) {
    Datum value = CStringGetTextDatum(text);
    if (column.type == VARCHAROID)
        value =
            DirectFunctionCall3(varchar, value, Int32GetDatum(column.typmod), BoolGetDatum(false));
    return value;
}

} // namespace interlock::marker

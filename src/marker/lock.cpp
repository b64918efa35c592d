// The verbs on one row's marker: lock, touch, save, unlock, force, look.

#include "marker/write.h"
#include "server/arguments.h"
#include "server/error.h"
#include "server/result_row.h"
#include "table/own_table.h"
#include "table/restricted.h"
#include "version/update.h"

using namespace interlock;

namespace {

constexpr int kAttempts = 10;

// The marker as it is stored.
struct Look {
    bool found;
    MarkerState state;
    const char* reason;
};

MarkedRow open_call(const Arguments& arguments, bool names_holder,
                    LOCKMODE mode = RowExclusiveLock);
Look look(const MarkedRow& call);
[[noreturn]] void explain_unsaved(const MarkedRow& call, const int64* expected);
void audit_force(const MarkedRow& call, const MarkerState& state, const char* reason);
Datum marker_row(FunctionCallInfo fcinfo, bool locked, const MarkerState& state);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(lock_row);
PG_FUNCTION_INFO_V1(unlock_row);
PG_FUNCTION_INFO_V1(touch_row);
PG_FUNCTION_INFO_V1(save_row);
PG_FUNCTION_INFO_V1(force_unlock_row);
PG_FUNCTION_INFO_V1(row_lock);

Datum lock_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    MarkedRow call = open_call(arguments, true);
    int64 timeout = arguments.is_null(3)
                        ? call.marker->timeout
                        : duration_argument(arguments.interval(3, "timeout"), "timeout");
    const char* reason = arguments.string_or_null(4);
    for (int i = 0; i < kAttempts; i++) {
        MarkerState held = {};
        if (take_marker(call, timeout, reason, &held)) {
            close_table(call.rel);
            return marker_row(fcinfo, true, held);
        }
        Look found = look(call);
        if (!found.found)
            raise_no_such_row(call.rel, call.info, call.key);
        if (found.state.live && strcmp(found.state.holder, call.holder) != 0) {
            close_table(call.rel);
            return marker_row(fcinfo, false, found.state);
        }
    }
    raise_suppressed(call.rel);
}

Datum unlock_row(PG_FUNCTION_ARGS) {
    MarkedRow call = open_call(Arguments(fcinfo), true);
    bool released = release_marker(call, Verb::kRelease);
    close_table(call.rel);
    PG_RETURN_BOOL(released);
}

Datum touch_row(PG_FUNCTION_ARGS) {
    MarkedRow call = open_call(Arguments(fcinfo), true);
    TimestampTz until = 0;
    bool held = touch_marker(call, &until);
    close_table(call.rel);
    if (!held)
        PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(until);
}

Datum save_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    MarkedRow call = open_call(arguments, true);
    Bitmapset* managed = bms_copy(call.marker->attnums);
    int64 expected = 0;
    bool has_expected = !arguments.is_null(4);
    if (versioning_of(call.info) != nullptr)
        managed = bms_add_member(managed, require_versioning(call.rel, call.info)->column);
    if (has_expected) {
        if (!is_counter(require_versioning(call.rel, call.info)->kind))
            ereport(
                ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("version column \"%s\" of table \"%s\" is no counter",
                        NameStr(versioning_of(call.info)->name), RelationGetRelationName(call.rel)),
                 errhint("Call interlock.set_holder and interlock.versioned_update, then "
                         "interlock.unlock_row, in one transaction.")));
        expected = DatumGetInt64(arguments.value(4));
    }
    Changes changes = parse_changes(call.rel, call.info, arguments.jsonb(3, "changes"), managed);
    NullableDatum version;
    if (!save_marked(call, changes, has_expected ? &expected : nullptr, &version))
        explain_unsaved(call, has_expected ? &expected : nullptr);
    close_table(call.rel);
    if (version.isnull)
        PG_RETURN_NULL();
    return version.value;
}

Datum force_unlock_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    MarkedRow call = open_call(arguments, false);
    const char* reason = arguments.string(2, "reason");
    if (reason[0] == '\0')
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("reason must not be empty"),
                 errhint("It is kept in interlock.row_lock_audit.")));
    for (int i = 0; i < kAttempts; i++) {
        Look found = look(call);
        if (!found.found)
            raise_no_such_row(call.rel, call.info, call.key);
        if (!found.state.live) {
            close_table(call.rel);
            PG_RETURN_NULL();
        }
        call.holder = found.state.holder;
        if (release_marker(call, Verb::kForce)) {
            audit_force(call, found.state, reason);
            close_table(call.rel);
            PG_RETURN_TEXT_P(cstring_to_text(call.holder));
        }
    }
    raise_suppressed(call.rel);
}

Datum row_lock(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    MarkedRow call = open_call(arguments, false, AccessShareLock);
    Look found = look(call);
    if (!found.found)
        raise_no_such_row(call.rel, call.info, call.key);
    close_table(call.rel);
    bool free = !found.state.live;
    Datum values[5] = {BoolGetDatum(!free)};
    bool nulls[5] = {false, free, free || found.state.since == DT_NOBEGIN, free,
                     free || found.reason == nullptr};
    if (!free) {
        values[1] = CStringGetTextDatum(found.state.holder);
        values[2] = TimestampTzGetDatum(found.state.since);
        values[3] = TimestampTzGetDatum(found.state.until);
        if (found.reason != nullptr)
            values[4] = CStringGetTextDatum(found.reason);
    }
    return result_row(fcinfo, values, nulls);
}
}

namespace {

MarkedRow open_call(const Arguments& arguments, bool names_holder, LOCKMODE mode) {
    MarkedRow call = {};
    call.rel = open_table(arguments.relation(0), mode);
    call.info = table_info(call.rel);
    call.marker = require_marker(call.rel, call.info);
    call.key = key_argument(arguments, 1, call.rel, call.info);
    if (names_holder)
        call.holder = check_holder(arguments.string(2, "holder"));
    return call;
}

Look look(const MarkedRow& call) {
    Look result = {};
    StoredRow row = read_row(call.rel, call.info, call.key, call.marker->attnums);
    result.found = row.found;
    if (!row.found)
        return result;
    // Spread over a row of the table's shape, so that the marker's attribute numbers fit.
    HeapTuple tuple = stored_row_as_tuple(row, call.info);
    result.state = marker_state(call.marker, call.info->columns, tuple, GetCurrentTimestamp());
    if (result.state.live && result.state.holder == nullptr)
        result.state.holder = "";
    bool is_null;
    Datum reason =
        heap_getattr(tuple, call.marker->columns[kReason].attnum, call.info->columns, &is_null);
    if (!is_null)
        result.reason = TextDatumGetCString(reason);
    return result;
}

// Says why a save found no row to write: it is gone, the marker is lost, or the version is another
// one.
void explain_unsaved(const MarkedRow& call, const int64* expected) {
    Look found = look(call);
    if (!found.found)
        raise_no_such_row(call.rel, call.info, call.key);
    bool held = found.state.live && strcmp(found.state.holder, call.holder) == 0;
    if (held && expected != nullptr) {
        StoredRow row = read_row(call.rel, call.info, call.key,
                                 bms_make_singleton(versioning_of(call.info)->column));
        if (row.found && stored_token(row, versioning_of(call.info)) != *expected)
            raise_version_conflict(call.rel, call.info, call.key, *expected,
                                   stored_token(row, versioning_of(call.info)));
    }
    if (held)
        raise_suppressed(call.rel);
    const char* present = found.state.live ? found.state.holder : nullptr;
    ereport(ERROR, (errcode(kMarkerNotHeld),
                    errmsg("\"%s\" does not hold the row of table \"%s\"", call.holder,
                           RelationGetRelationName(call.rel)),
                    errdetail_internal(
                        "%s", json_object({{"table", qualified_name(call.rel)},
                                           {"key", nullptr, key_to_text(call.info, call.key)},
                                           {"holder", present}})),
                    errhint("The marker expired, was released or was never taken: lock the row "
                            "again, read it, and "
                            "repeat the change.")));
}

void audit_force(const MarkedRow& call, const MarkerState& state, const char* reason) {
    Oid types[6] = {TEXTOID, JSONBOID, TEXTOID, TEXTOID, TEXTOID, TIMESTAMPTZOID};
    Datum values[6] = {CStringGetTextDatum(qualified_name(call.rel)),
                       key_to_jsonb(call.info, call.key),
                       CStringGetTextDatum(state.holder),
                       CStringGetTextDatum(reason),
                       CStringGetTextDatum(GetUserNameFromId(GetUserId(), false)),
                       TimestampTzGetDatum(state.until)};
    write_own_table(
        "row_lock_audit", TRIGGER_TYPE_INSERT,
        "INSERT INTO interlock.row_lock_audit (table_name, key, holder, reason, forced_by, "
        "would_expire_at) VALUES ($1, $2, $3, $4, $5, $6)",
        6, types, values);
}

// (locked, holder, locked_at, expires_at)
Datum marker_row(FunctionCallInfo fcinfo, bool locked, const MarkerState& state) {
    Datum values[4] = {BoolGetDatum(locked), CStringGetTextDatum(state.holder),
                       TimestampTzGetDatum(state.since), TimestampTzGetDatum(state.until)};
    bool nulls[4] = {false, false, state.since == DT_NOBEGIN, state.until == DT_NOBEGIN};
    return result_row(fcinfo, values, nulls);
}

} // namespace

// The verbs on one row's marker: lock, touch, save, unlock, force, look.

#include "arguments.h"
#include "error.h"
#include "marker.h"
#include "own_table.h"
#include "plan.h"
#include "result_row.h"
#include "row.h"
#include "version_update.h"

using namespace interlock;

namespace {

constexpr int kAttempts = 10;

// What every verb is given.
struct Call {
    Relation rel;
    const RelationFacts* facts;
    const Marker* marker;
    Key key;
    const char* holder; // null for verbs that name none
};

// The marker as it is stored.
struct Look {
    bool found;
    MarkerState state;
    const char* reason;
};

Call open_call(const Arguments& arguments, bool names_holder, LOCKMODE mode = RowExclusiveLock);
Look look(const Call& call);
bool run_lock(const Call& call, int64 timeout, const char* reason, MarkerState* held);
bool run_release(const Call& call, Verb verb);
bool run_touch(const Call& call, TimestampTz* until);
bool run_save(const Call& call, const Changes& changes, const int64* expected, Datum* version,
              bool* version_is_null);
[[noreturn]] void explain_unsaved(const Call& call, const int64* expected);
void audit_force(const Call& call, const MarkerState& state, const char* reason);
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
    Call call = open_call(arguments, true);
    int64 timeout = arguments.is_null(3)
                        ? call.marker->timeout
                        : duration_argument(arguments.interval(3, "timeout"), "timeout");
    const char* reason = arguments.string_or_null(4);
    for (int i = 0; i < kAttempts; i++) {
        MarkerState held = {};
        if (run_lock(call, timeout, reason, &held)) {
            close_table(call.rel);
            return marker_row(fcinfo, true, held);
        }
        Look found = look(call);
        if (!found.found)
            raise_no_such_row(call.rel, call.facts, call.key);
        if (found.state.live && strcmp(found.state.holder, call.holder) != 0) {
            close_table(call.rel);
            return marker_row(fcinfo, false, found.state);
        }
    }
    raise_suppressed(call.rel);
}

Datum unlock_row(PG_FUNCTION_ARGS) {
    Call call = open_call(Arguments(fcinfo), true);
    bool released = run_release(call, Verb::kRelease);
    close_table(call.rel);
    PG_RETURN_BOOL(released);
}

Datum touch_row(PG_FUNCTION_ARGS) {
    Call call = open_call(Arguments(fcinfo), true);
    TimestampTz until = 0;
    bool held = run_touch(call, &until);
    close_table(call.rel);
    if (!held)
        PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(until);
}

Datum save_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Call call = open_call(arguments, true);
    Bitmapset* managed = bms_copy(call.marker->attnums);
    int64 expected = 0;
    bool has_expected = !arguments.is_null(4);
    if (call.facts->versioning != nullptr)
        managed = bms_add_member(managed, require_versioning(call.rel, call.facts)->column);
    if (has_expected) {
        if (!is_counter(require_versioning(call.rel, call.facts)->kind))
            ereport(
                ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("version column \"%s\" of table \"%s\" is no counter",
                        NameStr(call.facts->versioning->name), RelationGetRelationName(call.rel)),
                 errhint("Call interlock.set_holder and interlock.versioned_update, then "
                         "interlock.unlock_row, in one transaction.")));
        expected = DatumGetInt64(arguments.value(4));
    }
    Changes changes = parse_changes(call.rel, call.facts, arguments.jsonb(3, "changes"), managed);
    Datum version = 0;
    bool version_is_null = true;
    if (!run_save(call, changes, has_expected ? &expected : nullptr, &version, &version_is_null))
        explain_unsaved(call, has_expected ? &expected : nullptr);
    close_table(call.rel);
    if (version_is_null)
        PG_RETURN_NULL();
    return version;
}

Datum force_unlock_row(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Call call = open_call(arguments, false);
    const char* reason = arguments.string(2, "reason");
    if (reason[0] == '\0')
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("reason must not be empty"),
                 errhint("It is kept in interlock.row_lock_audit.")));
    for (int i = 0; i < kAttempts; i++) {
        Look found = look(call);
        if (!found.found)
            raise_no_such_row(call.rel, call.facts, call.key);
        if (!found.state.live) {
            close_table(call.rel);
            PG_RETURN_NULL();
        }
        call.holder = found.state.holder;
        if (run_release(call, Verb::kForce)) {
            audit_force(call, found.state, reason);
            close_table(call.rel);
            PG_RETURN_TEXT_P(cstring_to_text(call.holder));
        }
    }
    raise_suppressed(call.rel);
}

Datum row_lock(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Call call = open_call(arguments, false, AccessShareLock);
    Look found = look(call);
    if (!found.found)
        raise_no_such_row(call.rel, call.facts, call.key);
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

Call open_call(const Arguments& arguments, bool names_holder, LOCKMODE mode) {
    Call call = {};
    call.rel = open_table(arguments.relation(0), mode);
    call.facts = facts_of(call.rel);
    call.marker = require_marker(call.rel, call.facts);
    call.key = key_argument(arguments, 1, call.rel, call.facts);
    if (names_holder)
        call.holder = check_holder(arguments.string(2, "holder"));
    return call;
}

Look look(const Call& call) {
    Look result = {};
    StoredRow row = read_row(call.rel, call.facts, call.key, call.marker->attnums);
    result.found = row.found;
    if (!row.found)
        return result;
    // Spread over a row of the table's shape, so that the marker's attribute numbers fit.
    HeapTuple tuple = stored_row_as_tuple(row, call.facts);
    result.state = marker_state(call.marker, call.facts->columns, tuple, GetCurrentTimestamp());
    if (result.state.live && result.state.holder == nullptr)
        result.state.holder = "";
    bool is_null;
    Datum reason =
        heap_getattr(tuple, call.marker->columns[kReason].attnum, call.facts->columns, &is_null);
    if (!is_null)
        result.reason = TextDatumGetCString(reason);
    return result;
}

constexpr const char* kClock = "pg_catalog.clock_timestamp()";

// An adopted marker may have no holder; it can be forced, by the empty name. The status is asked
// for in a way that hides the index over marked rows from the planner: it would read all of them,
// dead ones too, to find one.
void add_held_condition(Statement* statement, const Marker* marker) {
    statement->add(
        " AND COALESCE(t.%s, 0) OPERATOR(pg_catalog.=) 1 AND t.%s OPERATOR(pg_catalog.>) %s AND "
        "COALESCE(t.%s, '') OPERATOR(pg_catalog.=) $%d",
        quoted(marker, kStatus), quoted(marker, kUntil), kClock, quoted(marker, kHolder),
        statement->parameter(TEXTOID));
}

// The trigger dates the marker, after any wait.
void write_lock(Statement* statement, const Call& call) {
    const Marker* marker = call.marker;
    const char* status = quoted(marker, kStatus);
    const char* holder = quoted(marker, kHolder);
    const char* time = quoted(marker, kTime);
    const char* until = quoted(marker, kUntil);
    const char* reason = quoted(marker, kReason);
    int me = statement->parameter(TEXTOID);
    statement->add("UPDATE %s AS t SET %s = 1, %s = $%d, %s = t.%s, %s = $%d, ", rows_of(call.rel),
                   status, holder, me, time, time, until, statement->parameter(TIMESTAMPTZOID));
    statement->add("%s = COALESCE($%d, t.%s) WHERE ", reason, statement->parameter(TEXTOID),
                   reason);
    add_key_condition(statement, call.facts);
    statement->add(
        " AND (t.%s IS NULL OR NOT t.%s OPERATOR(pg_catalog.=) 1 OR t.%s IS NULL OR t.%s "
        "OPERATOR(pg_catalog.<=) %s OR t.%s "
        "OPERATOR(pg_catalog.=) $%d) RETURNING %s, %s",
        status, status, until, until, kClock, holder, me, time, until);
}

VerbCall verb_call(const Call& call, Verb verb, int64 timeout) {
    VerbCall result = {};
    result.verb = verb;
    result.root = call.marker->root;
    result.holder = call.holder;
    result.timeout = timeout;
    result.until = DatumGetTimestampTz(
        marker_time(call.marker->columns[kUntil], GetCurrentTimestamp() + timeout));
    result.trigger_depth = trigger_depth();
    return result;
}

TimestampTz returned_time(const MarkerColumn& column, int position) {
    bool is_null;
    Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, position, &is_null);
    if (is_null)
        return DT_NOBEGIN;
    if (column.type == TIMESTAMPOID)
        value = DirectFunctionCall1(timestamp_timestamptz, value);
    return DatumGetTimestampTz(value);
}

bool run_lock(const Call& call, int64 timeout, const char* reason, MarkerState* held) {
    bool locked = false;
    VerbCall verb = verb_call(call, Verb::kLock, timeout);
    verb.has_reason = reason != nullptr;
    as_verb(verb, [&] {
        with_spi([&] {
            SPIPlanPtr plan = plan_of({RelationGetRelid(call.rel), PlanKind::kMarkerLock},
                                      [&](Statement* statement) { write_lock(statement, call); });
            Parameters parameters(call.facts->key_count + 3);
            parameters.add(CStringGetTextDatum(call.holder));
            parameters.add(TimestampTzGetDatum(verb.until));
            parameters.add(reason != nullptr ? CStringGetTextDatum(reason) : 0, reason == nullptr);
            add_key(&parameters, call.facts, call.key);
            locked = run_plan(plan, parameters) > 0;
            if (!locked)
                return;
            held->since = returned_time(call.marker->columns[kTime], 1);
            held->until = returned_time(call.marker->columns[kUntil], 2);
            held->holder = call.holder;
        });
    });
    return locked;
}

// Takes the marker off while call.holder holds it.
bool run_release(const Call& call, Verb verb) {
    bool released = false;
    as_verb(verb_call(call, verb, call.marker->timeout), [&] {
        with_spi([&] {
            SPIPlanPtr plan = plan_of(
                {RelationGetRelid(call.rel), PlanKind::kMarkerUnlock}, [&](Statement* statement) {
                    statement->add("UPDATE %s AS t SET %s = 0 WHERE ", rows_of(call.rel),
                                   quoted(call.marker, kStatus));
                    add_key_condition(statement, call.facts);
                    add_held_condition(statement, call.marker);
                });
            Parameters parameters(call.facts->key_count + 1);
            add_key(&parameters, call.facts, call.key);
            parameters.add(CStringGetTextDatum(call.holder));
            released = run_plan(plan, parameters) > 0;
        });
    });
    return released;
}

// The trigger counts the deadline, and never moves it nearer.
void write_touch(Statement* statement, const Call& call) {
    const char* until = quoted(call.marker, kUntil);
    statement->add("UPDATE %s AS t SET %s = $%d WHERE ", rows_of(call.rel), until,
                   statement->parameter(TIMESTAMPTZOID));
    add_key_condition(statement, call.facts);
    add_held_condition(statement, call.marker);
    statement->add(" RETURNING %s", until);
}

bool run_touch(const Call& call, TimestampTz* until) {
    bool held = false;
    VerbCall verb = verb_call(call, Verb::kTouch, call.marker->timeout);
    as_verb(verb, [&] {
        with_spi([&] {
            SPIPlanPtr plan = plan_of({RelationGetRelid(call.rel), PlanKind::kMarkerTouch},
                                      [&](Statement* statement) { write_touch(statement, call); });
            Parameters parameters(call.facts->key_count + 2);
            parameters.add(TimestampTzGetDatum(verb.until));
            add_key(&parameters, call.facts, call.key);
            parameters.add(CStringGetTextDatum(call.holder));
            held = run_plan(plan, parameters) > 0;
            if (held)
                *until = returned_time(call.marker->columns[kUntil], 1);
        });
    });
    return held;
}

void write_save(Statement* statement, const Call& call, const Changes& changes, bool versioned) {
    const Versioning* versioning = call.facts->versioning;
    statement->add("UPDATE %s AS t SET ", rows_of(call.rel));
    add_assignments(statement, call.facts, changes.columns);
    statement->add("%s%s = 0 WHERE ", changes.count > 0 ? ", " : "", quoted(call.marker, kStatus));
    add_key_condition(statement, call.facts);
    add_held_condition(statement, call.marker);
    if (versioned) {
        statement->add(" AND ");
        add_token_condition(statement, versioning);
    }
    if (versioning != nullptr && is_counter(versioning->kind))
        statement->add(" RETURNING t.%s::pg_catalog.int8",
                       quote_identifier(NameStr(versioning->name)));
}

bool run_save(const Call& call, const Changes& changes, const int64* expected, Datum* version,
              bool* version_is_null) {
    bool saved = false;
    PlanKind kind = expected != nullptr ? PlanKind::kMarkerSaveVersioned : PlanKind::kMarkerSave;
    as_verb(verb_call(call, Verb::kRelease, call.marker->timeout), [&] {
        with_spi([&] {
            SPIPlanPtr plan = plan_of({RelationGetRelid(call.rel), kind, changes.columns},
                                      [&](Statement* statement) {
                                          write_save(statement, call, changes, expected != nullptr);
                                      });
            Parameters parameters(changes.count + call.facts->key_count + 2);
            add_changes(&parameters, changes);
            add_key(&parameters, call.facts, call.key);
            parameters.add(CStringGetTextDatum(call.holder));
            if (expected != nullptr)
                parameters.add(Int64GetDatum(*expected));
            saved = run_plan(plan, parameters) > 0;
            if (saved && SPI_tuptable != nullptr)
                *version = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
                                         version_is_null); // by value: outlives the connection
        });
    });
    return saved;
}

// Says why a save found no row to write: it is gone, the marker is lost, or the version is another
// one.
void explain_unsaved(const Call& call, const int64* expected) {
    Look found = look(call);
    if (!found.found)
        raise_no_such_row(call.rel, call.facts, call.key);
    bool held = found.state.live && strcmp(found.state.holder, call.holder) == 0;
    if (held && expected != nullptr) {
        StoredRow row = read_row(call.rel, call.facts, call.key,
                                 bms_make_singleton(call.facts->versioning->column));
        if (row.found && stored_token(row, call.facts->versioning) != *expected)
            raise_version_conflict(call.rel, call.facts, call.key, *expected,
                                   stored_token(row, call.facts->versioning));
    }
    if (held)
        raise_suppressed(call.rel);
    const char* present = found.state.live ? found.state.holder : nullptr;
    ereport(ERROR, (errcode(kMarkerNotHeld),
                    errmsg("\"%s\" does not hold the row of table \"%s\"", call.holder,
                           RelationGetRelationName(call.rel)),
                    errdetail_internal(
                        "%s", json_object({{"table", qualified_name(call.rel)},
                                           {"key", nullptr, key_to_text(call.facts, call.key)},
                                           {"holder", present}})),
                    errhint("The marker expired, was released or was never taken: lock the row "
                            "again, read it, and "
                            "repeat the change.")));
}

void audit_force(const Call& call, const MarkerState& state, const char* reason) {
    Oid types[6] = {TEXTOID, JSONBOID, TEXTOID, TEXTOID, TEXTOID, TIMESTAMPTZOID};
    Datum values[6] = {CStringGetTextDatum(qualified_name(call.rel)),
                       key_to_jsonb(call.facts, call.key),
                       CStringGetTextDatum(state.holder),
                       CStringGetTextDatum(reason),
                       CStringGetTextDatum(GetUserNameFromId(GetUserId(), false)),
                       TimestampTzGetDatum(state.until)};
    audit("row_lock_audit",
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

// Each statement is there twice: as what update_directly is asked for, and as the text for where
// that declines. Both must say the same.

#include "marker/write.h"

#include "execution/update.h"
#include "table/plan.h"
#include "version/version.h"

namespace interlock {

namespace {

VerbCall verb_call(const MarkedRow& row, Verb verb, int64 timeout) {
    VerbCall result = {};
    result.run = run_as_verb;
    result.verb = verb;
    result.root = row.marker->root;
    result.holder = row.holder;
    result.timeout = timeout;
    result.until = DT_NOBEGIN;
    if (verb == Verb::kLock || verb == Verb::kTouch)
        result.until = DatumGetTimestampTz(
            marker_time(row.marker->columns[kUntil], GetCurrentTimestamp() + timeout));
    result.trigger_depth = trigger_depth();
    return result;
}

// Writes the row in whichever way it can be written.
template <typename Directly, typename ByPlan>
bool write_as(const VerbCall& verb, Directly&& directly, ByPlan&& by_plan) {
    DirectOutcome direct = directly();
    if (direct != DirectOutcome::kDeclined)
        return direct == DirectOutcome::kDone;
    bool written = false;
    as_verb(verb, [&] { with_spi([&] { written = by_plan(); }); });
    return written;
}

// --- Directly ---------------------------------------------------------------------

Datum status_value(const Marker* marker, int status) {
    return marker->columns[kStatus].type == INT8OID ? Int64GetDatum(status) : Int32GetDatum(status);
}

// The statement raises 22001 for a text that is too long, but only where it finds a row.
bool fits(const MarkerColumn& column, const char* text) {
    return text == nullptr || column.type != VARCHAROID || column.typmod < 0 ||
           strlen(text) <= static_cast<size_t>(column.typmod - VARHDRSZ);
}

MarkerState state_of(const MarkedRow& row, TupleTableSlot* stored) {
    return marker_state(row.marker, values_in(stored), GetCurrentTimestamp());
}

// What was written, but not whether it is live.
MarkerState dates_of(const MarkedRow& row, TupleTableSlot* written) {
    return marker_state(row.marker, values_in(written), DT_NOEND);
}

// *until is the deadline that was met.
bool is_held(const MarkedRow& row, TupleTableSlot* stored, TimestampTz* until) {
    MarkerState state = state_of(row, stored);
    *until = state.until;
    return state.live && strcmp(state.holder != nullptr ? state.holder : "", row.holder) == 0;
}

// A row that is written unlocked may have been waited for after its marker was judged.
DirectOutcome unless_over(DirectOutcome outcome, TimestampTz until) {
    bool over = outcome == DirectOutcome::kDone && GetCurrentTimestamp() >= until;
    return over ? DirectOutcome::kNoRow : outcome;
}

bool was_waited_for(const RowUpdate& update, const VerbCall& verb, TimestampTz until) {
    constexpr TimestampTz kAtOnce = 2 * USECS_PER_SEC; // more than a column's precision
    return may_write_unlocked(update) && GetCurrentTimestamp() + verb.timeout > until + kAtOnce;
}

RowUpdate update_of(const MarkedRow& row, const VerbCall& verb, const Changes& changes, int more) {
    return {{row.rel, row.facts, &row.key}, extended(changes, more), &verb};
}

DirectOutcome take_directly(const MarkedRow& row, const VerbCall& verb, const char* reason,
                            MarkerState* held) {
    const MarkerColumn* columns = row.marker->columns;
    if (!row.marker->compares_bytes || !fits(columns[kHolder], row.holder) ||
        !fits(columns[kReason], reason))
        return DirectOutcome::kDeclined;
    RowUpdate update = update_of(row, verb, {}, kMarkerRoles);
    Changes* changes = &update.changes;
    assign(changes, columns[kStatus].attnum, status_value(row.marker, 1));
    assign(changes, columns[kHolder].attnum, marker_text(columns[kHolder], row.holder));
    assign(changes, columns[kTime].attnum);
    assign(changes, columns[kUntil].attnum, TimestampTzGetDatum(verb.until));
    if (reason != nullptr)
        assign(changes, columns[kReason].attnum, marker_text(columns[kReason], reason));
    else
        assign(changes, columns[kReason].attnum);
    auto take = [&] {
        return update_directly(
            update,
            [&](TupleTableSlot* stored) {
                MarkerState state = state_of(row, stored);
                return !state.live || same_holder(state.holder, row.holder);
            },
            [&](TupleTableSlot* written) {
                MarkerState state = dates_of(row, written);
                held->since = state.since;
                held->until = state.until;
            });
    };
    DirectOutcome outcome = take();
    if (outcome == DirectOutcome::kDone && was_waited_for(update, verb, held->until))
        outcome = take(); // for the deadline
    return outcome;
}

DirectOutcome release_directly(const MarkedRow& row, const VerbCall& verb) {
    if (!row.marker->compares_bytes)
        return DirectOutcome::kDeclined;
    RowUpdate update = update_of(row, verb, {}, 1);
    assign(&update.changes, row.marker->columns[kStatus].attnum, status_value(row.marker, 0));
    TimestampTz until = 0;
    DirectOutcome outcome = update_directly(
        update, [&](TupleTableSlot* stored) { return is_held(row, stored, &until); },
        [](TupleTableSlot*) {});
    return unless_over(outcome, until);
}

DirectOutcome touch_directly(const MarkedRow& row, const VerbCall& verb, TimestampTz* until) {
    if (!row.marker->compares_bytes)
        return DirectOutcome::kDeclined;
    RowUpdate update = update_of(row, verb, {}, 1);
    update.lock_first = true; // a new deadline could not be taken back
    assign(&update.changes, row.marker->columns[kUntil].attnum, TimestampTzGetDatum(verb.until));
    TimestampTz before = 0;
    return update_directly(
        update, [&](TupleTableSlot* stored) { return is_held(row, stored, &before); },
        [&](TupleTableSlot* written) { *until = dates_of(row, written).until; });
}

NullableDatum version_of(const MarkedRow& row, TupleTableSlot* stored) {
    NullableDatum version;
    version.value = slot_getattr(stored, versioning_of(row.facts)->column, &version.isnull);
    return version;
}

DirectOutcome save_directly(const MarkedRow& row, const VerbCall& verb, const Changes& changes,
                            const int64* expected, NullableDatum* version) {
    if (!row.marker->compares_bytes)
        return DirectOutcome::kDeclined;
    const Versioning* versioning = versioning_of(row.facts);
    auto token_of = [&](TupleTableSlot* stored) {
        NullableDatum present = version_of(row, stored);
        return token_of_datum(versioning->kind, present.value, present.isnull);
    };
    RowUpdate update = update_of(row, verb, changes, 1);
    assign(&update.changes, row.marker->columns[kStatus].attnum, status_value(row.marker, 0));
    TimestampTz until = 0;
    DirectOutcome outcome = update_directly(
        update,
        [&](TupleTableSlot* stored) {
            return is_held(row, stored, &until) &&
                   (expected == nullptr || token_of(stored) == *expected);
        },
        [&](TupleTableSlot* stored) {
            if (versioning == nullptr || !is_counter(versioning->kind))
                return;
            version->isnull = version_of(row, stored).isnull;
            version->value = Int64GetDatum(token_of(stored));
        });
    return unless_over(outcome, until);
}

// --- By a plan ----------------------------------------------------------------------

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
void write_take(Statement* statement, const MarkedRow& row) {
    const Marker* marker = row.marker;
    const char* status = quoted(marker, kStatus);
    const char* holder = quoted(marker, kHolder);
    const char* time = quoted(marker, kTime);
    const char* until = quoted(marker, kUntil);
    const char* reason = quoted(marker, kReason);
    int me = statement->parameter(TEXTOID);
    statement->add("UPDATE %s AS t SET %s = 1, %s = $%d, %s = t.%s, %s = $%d, ", rows_of(row.rel),
                   status, holder, me, time, time, until, statement->parameter(TIMESTAMPTZOID));
    statement->add("%s = COALESCE($%d, t.%s) WHERE ", reason, statement->parameter(TEXTOID),
                   reason);
    add_key_condition(statement, row.facts);
    statement->add(
        " AND (t.%s IS NULL OR NOT t.%s OPERATOR(pg_catalog.=) 1 OR t.%s IS NULL OR t.%s "
        "OPERATOR(pg_catalog.<=) %s OR t.%s "
        "OPERATOR(pg_catalog.=) $%d) RETURNING %s, %s",
        status, status, until, until, kClock, holder, me, time, until);
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

bool take_by_plan(const MarkedRow& row, TimestampTz until, const char* reason, MarkerState* held) {
    SPIPlanPtr plan = plan_of({RelationGetRelid(row.rel), PlanKind::kMarkerLock},
                              [&](Statement* statement) { write_take(statement, row); });
    Parameters parameters(row.facts->key_count + 3);
    parameters.add(CStringGetTextDatum(row.holder));
    parameters.add(TimestampTzGetDatum(until));
    parameters.add(reason != nullptr ? CStringGetTextDatum(reason) : 0, reason == nullptr);
    add_key(&parameters, row.facts, row.key);
    if (run_plan(plan, parameters) == 0)
        return false;
    held->since = returned_time(row.marker->columns[kTime], 1);
    held->until = returned_time(row.marker->columns[kUntil], 2);
    return true;
}

void write_release(Statement* statement, const MarkedRow& row) {
    statement->add("UPDATE %s AS t SET %s = 0 WHERE ", rows_of(row.rel),
                   quoted(row.marker, kStatus));
    add_key_condition(statement, row.facts);
    add_held_condition(statement, row.marker);
}

bool release_by_plan(const MarkedRow& row) {
    SPIPlanPtr plan = plan_of({RelationGetRelid(row.rel), PlanKind::kMarkerUnlock},
                              [&](Statement* statement) { write_release(statement, row); });
    Parameters parameters(row.facts->key_count + 1);
    add_key(&parameters, row.facts, row.key);
    parameters.add(CStringGetTextDatum(row.holder));
    return run_plan(plan, parameters) > 0;
}

// The trigger counts the deadline, and never moves it nearer.
void write_touch(Statement* statement, const MarkedRow& row) {
    const char* until = quoted(row.marker, kUntil);
    statement->add("UPDATE %s AS t SET %s = $%d WHERE ", rows_of(row.rel), until,
                   statement->parameter(TIMESTAMPTZOID));
    add_key_condition(statement, row.facts);
    add_held_condition(statement, row.marker);
    statement->add(" RETURNING %s", until);
}

bool touch_by_plan(const MarkedRow& row, TimestampTz asked, TimestampTz* until) {
    SPIPlanPtr plan = plan_of({RelationGetRelid(row.rel), PlanKind::kMarkerTouch},
                              [&](Statement* statement) { write_touch(statement, row); });
    Parameters parameters(row.facts->key_count + 2);
    parameters.add(TimestampTzGetDatum(asked));
    add_key(&parameters, row.facts, row.key);
    parameters.add(CStringGetTextDatum(row.holder));
    if (run_plan(plan, parameters) == 0)
        return false;
    *until = returned_time(row.marker->columns[kUntil], 1);
    return true;
}

void write_save(Statement* statement, const MarkedRow& row, const Changes& changes,
                bool versioned) {
    const Versioning* versioning = versioning_of(row.facts);
    statement->add("UPDATE %s AS t SET ", rows_of(row.rel));
    add_assignments(statement, row.facts, changes.columns);
    statement->add("%s%s = 0 WHERE ", changes.count > 0 ? ", " : "", quoted(row.marker, kStatus));
    add_key_condition(statement, row.facts);
    add_held_condition(statement, row.marker);
    if (versioned) {
        statement->add(" AND ");
        add_token_condition(statement, versioning);
    }
    if (versioning != nullptr && is_counter(versioning->kind))
        statement->add(" RETURNING t.%s::pg_catalog.int8",
                       quote_identifier(NameStr(versioning->name)));
}

bool save_by_plan(const MarkedRow& row, const Changes& changes, const int64* expected,
                  NullableDatum* version) {
    PlanKind kind = expected != nullptr ? PlanKind::kMarkerSaveVersioned : PlanKind::kMarkerSave;
    SPIPlanPtr plan = plan_of(
        {RelationGetRelid(row.rel), kind, changes.columns},
        [&](Statement* statement) { write_save(statement, row, changes, expected != nullptr); });
    Parameters parameters(changes.count + row.facts->key_count + 2);
    add_changes(&parameters, changes);
    add_key(&parameters, row.facts, row.key);
    parameters.add(CStringGetTextDatum(row.holder));
    if (expected != nullptr)
        parameters.add(Int64GetDatum(*expected));
    bool saved = run_plan(plan, parameters) > 0;
    if (saved && SPI_tuptable != nullptr)
        version->value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
                                       &version->isnull); // by value: outlives the connection
    return saved;
}

} // namespace

bool take_marker(const MarkedRow& row, int64 timeout, const char* reason, MarkerState* held) {
    VerbCall verb = verb_call(row, Verb::kLock, timeout);
    verb.has_reason = reason != nullptr;
    held->holder = row.holder;
    return write_as(
        verb, [&] { return take_directly(row, verb, reason, held); },
        [&] { return take_by_plan(row, verb.until, reason, held); });
}

bool release_marker(const MarkedRow& row, Verb kind) {
    VerbCall verb = verb_call(row, kind, row.marker->timeout);
    return write_as(
        verb, [&] { return release_directly(row, verb); }, [&] { return release_by_plan(row); });
}

bool touch_marker(const MarkedRow& row, TimestampTz* until) {
    VerbCall verb = verb_call(row, Verb::kTouch, row.marker->timeout);
    return write_as(
        verb, [&] { return touch_directly(row, verb, until); },
        [&] { return touch_by_plan(row, verb.until, until); });
}

bool save_marked(const MarkedRow& row, const Changes& changes, const int64* expected,
                 NullableDatum* version) {
    *version = {0, true};
    VerbCall verb = verb_call(row, Verb::kRelease, row.marker->timeout);
    return write_as(
        verb, [&] { return save_directly(row, verb, changes, expected, version); },
        [&] { return save_by_plan(row, changes, expected, version); });
}

} // namespace interlock

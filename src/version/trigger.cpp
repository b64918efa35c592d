// The trigger that moves the token of a versioned row.

#include "version/trigger.h"
#include "execution/partition_move.h"
#include "execution/probe.h"
#include "execution/row_change.h"
#include "server/error.h"
#include "statement/running.h"
#include "table/last_word.h"
#include "table/row.h"
#include "version/blind.h"
#include "version/blind_count.h"
#include "version/errors.h"
#include "version/housekeeping.h"
#include "version/start.h"
#include "version/version.h"

namespace interlock::version {

uint64 versioned_updates = 0;

static bool move_version(RowChange* change, bool by_function);
static void rise_above_start(RowChange* change);
static bool key_changes(const RowChange& change);
static void check_new_version(Relation rel, const TableInfo* info, TupleTableSlot* row);

extern "C" {
PG_FUNCTION_INFO_V1(version_trigger);

Datum version_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "version_trigger");
    Relation rel = trigger->tg_relation;
    const TableInfo* info = table_info(rel);
    usable_versioning(rel, info);
    if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event)) {
        judge_blindness(trigger, info, nullptr);
        note_departure(rel, info, trigger->tg_trigtuple);
        return PointerGetDatum(trigger->tg_trigtuple);
    }
    if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event)) {
        if (!fires_in_restore(trigger))
            check_new_version(rel, info, trigger->tg_trigslot);
        return PointerGetDatum(trigger->tg_trigtuple);
    }
    require_last_word(rel, info, TRIGGER_TYPE_UPDATE);
    versioned_updates++;
    RowChange change = change_of(trigger, info);
    judge_blindness(trigger, info, &change);
    bool is_assigned = move_version(&change, is_fired_by_function());
    bool leaves_key = key_changes(change);
    if (leaves_key && !is_assigned) // else the writer keeps its own in mind
        rise_above_start(&change);
    note_versioned_write();
    refuse_unchecked_move(change);
    if (leaves_key)
        note_departure(rel, info, trigger->tg_trigtuple);
    return PointerGetDatum(tuple_to_write(change, trigger->tg_newtuple));
}
}

[[noreturn]] static void refuse_version(const RowChange& change, int64 old_token,
                                        const char* given) {
    count(change.info, CountedKind::kVersioning, Counter::kConflicts);
    raise_version_set(change.rel, change.info, row_in(change.old_row), old_token, given);
}

[[noreturn]] static void refuse_end_of_range(Relation rel, const Versioning* versioning) {
    ereport(
        ERROR,
        (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
         errmsg("version column \"%s\" of table \"%s\" has reached the end of its range",
                NameStr(versioning->name), RelationGetRelationName(rel)),
         errhint(
             "Give the column a larger type, or reset it after disable_versioning while no client "
             "holds an old version.")));
}

// Decides the next counter. Returns false when the new row already holds it.
static bool next_counter(const RowChange& change, const Versioning* versioning, bool by_function,
                         int64 old_token, int64 new_token, bool new_is_null, Datum* next) {
    int64 limit = versioning->kind == TokenKind::kInteger ? PG_INT32_MAX : PG_INT64_MAX;
    bool assigned = new_is_null ? old_token != 0 : new_token != old_token;
    if (assigned && !new_is_null && old_token < limit && new_token == old_token + 1)
        return false;
    if (assigned)
        refuse_version(change, old_token,
                       new_is_null ? "null" : token_to_json(versioning->kind, new_token));
    if (is_housekeeping(change, versioning, by_function))
        return false;
    if (old_token >= limit)
        refuse_end_of_range(change.rel, versioning);
    *next = versioning->kind == TokenKind::kInteger
                ? Int32GetDatum(static_cast<int32>(old_token + 1))
                : Int64GetDatum(old_token + 1);
    return true;
}

// The clock in the column's own terms and precision.
static Timestamp clock_token(const Versioning* versioning) {
    TimestampTz clock = GetCurrentTimestamp();
    Timestamp token = clock;
    if (versioning->kind == TokenKind::kTimestamp)
        token = DatumGetTimestamp(
            DirectFunctionCall1(timestamptz_timestamp, TimestampTzGetDatum(clock)));
    round_timestamp(&token, versioning->typmod);
    return token;
}

// The latest time that a writer may give: a minute ahead of the clock. A time without zone may be
// meant in any zone, so it is the clock of the one that is furthest ahead.
static Timestamp latest_token(const Versioning* versioning) {
    constexpr int64 kFurthestZone = 14 * USECS_PER_HOUR;
    Timestamp clock = clock_token(versioning);
    if (versioning->kind == TokenKind::kTimestamp)
        clock = Max(clock, GetCurrentTimestamp() + kFurthestZone);
    return clock + USECS_PER_MINUTE;
}

static int64 clock_step(const Versioning* versioning) {
    int64 step = 1;
    for (int precision = versioning->typmod; precision >= 0 && precision < MAX_TIMESTAMP_PRECISION;
         precision++)
        step *= 10;
    return step;
}

[[noreturn]] static void refuse_future(Relation rel, const Versioning* versioning) {
    ereport(ERROR,
            (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
             errmsg("version column \"%s\" of table \"%s\" cannot be more than a minute ahead of "
                    "the clock",
                    NameStr(versioning->name), RelationGetRelationName(rel)),
             errhint("Leave the version to the server, or set it to now(). Check the clock of a "
                     "client that sends its own time.")));
}

// The time after the stored one: the clock, and in any case later than before. A stored time that
// is more than a day ahead came in past the trigger, and would stay ahead for ever: it gives way to
// the clock. Less than that may be a clock that was set back.
static Timestamp next_time(const Versioning* versioning, int64 old_token) {
    Timestamp clock = clock_token(versioning);
    bool is_ahead = old_token >= clock;
    if (is_ahead && old_token <= latest_token(versioning) + USECS_PER_DAY)
        return old_token + clock_step(versioning);
    return clock;
}

// A row that moves is checked as a new one in the other partition, too, where its old version is
// not known.
static bool must_give_way(const RowChange& change, const Versioning* versioning, int64 token) {
    return change.info->partition_columns != nullptr && token > latest_token(versioning) &&
           OidIsValid(new_partition(change));
}

// Decides the next timestamp: the value that the writer gave if it is later than the stored one
// (adopted updated_time columns), else the time after it.
static bool next_timestamp(const RowChange& change, const Versioning* versioning, bool by_function,
                           int64 old_token, int64 new_token, bool new_is_null, Datum* next) {
    if (!new_is_null && TIMESTAMP_NOT_FINITE(new_token) && new_token != old_token)
        refuse_version(change, old_token, token_to_json(versioning->kind, new_token));
    if (!new_is_null && new_token > old_token) {
        if (new_token > latest_token(versioning))
            refuse_future(change.rel, versioning);
        return false;
    }
    bool assigned = new_is_null ? old_token != DT_NOBEGIN : new_token != old_token;
    bool stays = !assigned && is_housekeeping(change, versioning, by_function);
    int64 token = stays ? old_token : next_time(versioning, old_token);
    if (must_give_way(change, versioning, token))
        token = clock_token(versioning);
    *next = TimestampGetDatum(token);
    return token != old_token;
}

// A new row, or one that moves here from another partition.
static void check_new_version(Relation rel, const TableInfo* info, TupleTableSlot* row) {
    const Versioning* versioning = versioning_of(info);
    if (is_counter(versioning->kind))
        return;
    require_last_word(rel, info, TRIGGER_TYPE_INSERT);
    bool is_null;
    Datum version = slot_getattr(row, versioning->column, &is_null);
    if (!is_null && DatumGetTimestamp(version) > latest_token(versioning))
        refuse_future(rel, versioning);
}

static bool any_changes(const RowChange& change, const Bitmapset* columns) {
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;)
        if (!same_value(RelationGetDescr(change.rel), change.old_row, change.new_row, column))
            return true;
    return false;
}

static bool key_of_table_changes(const RowChange& change) {
    return any_changes(change, change.info->key.attnums) ||
           any_changes(change, change.info->key_sources);
}

// A trigger before this one may have changed a key that the statement does not name.
static bool key_changes(const RowChange& change) {
    return key_of_table_changes(change) || any_changes(change, change.info->other_key_columns);
}

// The row takes a key that another one may have had, and whose clients hold versions of that one.
static void rise_above_start(RowChange* change) {
    const Versioning* versioning = versioning_of(change->info);
    if (!is_counter(versioning->kind) || !key_of_table_changes(*change))
        return;
    bool is_null;
    Datum version = slot_getattr(change->new_row, versioning->column, &is_null);
    int64 start = present_start(change->info);
    if (token_of_datum(versioning->kind, version, is_null) > start)
        return;
    if (start >= (versioning->kind == TokenKind::kInteger ? PG_INT32_MAX : PG_INT64_MAX))
        refuse_end_of_range(change->rel, versioning);
    put(change, versioning->column,
        {versioning->kind == TokenKind::kInteger ? Int32GetDatum(static_cast<int32>(start + 1))
                                                 : Int64GetDatum(start + 1),
         false});
}

// Whether the writer has set the next version itself.
static bool move_version(RowChange* change, bool by_function) {
    const Versioning* versioning = usable_versioning(change->rel, change->info);
    bool old_is_null, new_is_null;
    Datum old_value = slot_getattr(change->old_row, versioning->column, &old_is_null);
    Datum new_value = slot_getattr(change->new_row, versioning->column, &new_is_null);
    int64 old_token = token_of_datum(versioning->kind, old_value, old_is_null);
    int64 new_token = token_of_datum(versioning->kind, new_value, new_is_null);

    Datum next;
    bool moves = is_counter(versioning->kind)
                     ? next_counter(*change, versioning, by_function, old_token, new_token,
                                    new_is_null, &next)
                     : next_timestamp(*change, versioning, by_function, old_token, new_token,
                                      new_is_null, &next);
    if (moves)
        put(change, versioning->column, {next, false});
    return !new_is_null && new_token != old_token;
}

bool check_version(RowChange* change) {
    if (!trigger_fires(versioning_of(change->info)->enabled))
        return true;
    versioned_updates++;
    note_own_write(change->rel, row_in(change->old_row), versioning_of(change->info));
    (void)move_version(change, true);
    note_versioned_write();
    // No function changes the table's key, but what a generated one is made of.
    bool takes_key = any_changes(*change, change->info->key_sources);
    if (takes_key)
        rise_above_start(change);
    if (takes_key || any_changes(*change, change->info->other_key_columns))
        note_departure(change->rel, change->info, row_in(change->old_row));
    return true;
}

} // namespace interlock::version

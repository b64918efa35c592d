// The triggers of escrow counters: a plain UPDATE of the column is refused or becomes a delta,
// DELETE and a change of the key end the row's counter.

#include "escrow/change.h"
#include "escrow/errors.h"
#include "escrow/own_write.h"
#include "escrow/reservation.h"
#include "execution/row_change.h"
#include "server/error.h"
#include "statement/running.h"
#include "table/last_word.h"
#include "table/row.h"

namespace interlock::escrow {

static const EscrowColumn* column_of_trigger(const TriggerData* trigger, const TableInfo* info);
static int64 value_in(const RowChange& change, const EscrowColumn& column, TupleTableSlot* row);
static void check_limits(const RowChange& change, const EscrowColumn& column);
static void require_unique(const RowChange& change, const EscrowColumn& column);
static void end_counter(const RowChange& change, const EscrowColumn& column);
static void check_update(RowChange* change, const EscrowColumn& column);

extern "C" {
PG_FUNCTION_INFO_V1(escrow_trigger);
PG_FUNCTION_INFO_V1(escrow_truncate_trigger);

Datum escrow_trigger(PG_FUNCTION_ARGS) {
    TriggerData* trigger = row_trigger(fcinfo, "escrow_trigger");
    if (fires_in_restore(trigger))
        return PointerGetDatum(trigger->tg_trigtuple);
    Relation rel = trigger->tg_relation;
    RowChange change = change_of(trigger, table_info(rel));
    const EscrowColumn& column = *column_of_trigger(trigger, change.info);
    // The publisher has tested it; and a fold is no change of the value.
    if (!TRIGGER_FIRED_BY_DELETE(trigger->tg_event) && applies_subscription())
        return PointerGetDatum(TRIGGER_FIRED_BY_INSERT(trigger->tg_event) ? trigger->tg_trigtuple
                                                                          : trigger->tg_newtuple);
    if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event)) {
        require_last_word(rel, change.info, TRIGGER_TYPE_INSERT);
        change.new_row = trigger->tg_trigslot;
        require_logged(rel); // or it could get the parts of a row that a crash has taken
        require_unique(change, column);
        check_limits(change, column);
        return PointerGetDatum(trigger->tg_trigtuple);
    }
    if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event)) {
        require_last_word(rel, change.info, TRIGGER_TYPE_DELETE);
        end_counter(change, column);
        return PointerGetDatum(trigger->tg_trigtuple);
    }
    require_last_word(rel, change.info, TRIGGER_TYPE_UPDATE);
    check_update(&change, column);
    return PointerGetDatum(tuple_to_write(change, trigger->tg_newtuple));
}

// TRUNCATE has excluded all that change counters, also prepared ones: each holds ROW EXCLUSIVE.
Datum escrow_truncate_trigger(PG_FUNCTION_ARGS) {
    if (!CALLED_AS_TRIGGER(fcinfo))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("escrow_truncate_trigger: not fired by a trigger")));
    auto* trigger = reinterpret_cast<TriggerData*>(fcinfo->context);
    if (!TRIGGER_FIRED_BY_TRUNCATE(trigger->tg_event))
        raise_forged(trigger->tg_relation, trigger->tg_trigger->tgname, "enable_escrow");
    Relation rel = trigger->tg_relation;
    each_escrow(table_info(rel), [&](const EscrowColumn& column) {
        if (column.attnum == InvalidAttrNumber)
            return;
        int count;
        const int64* counters = counters_of(RelationGetRelid(rel), column.label, &count);
        forget_expired(counters, count);
        refuse_reservations(rel, column, counters, count);
        (void)forget_counters(RelationGetRelid(rel), column.label);
    });
    return 0;
}
}

static const EscrowColumn* column_of_trigger(const TriggerData* trigger, const TableInfo* info) {
    const char* name = trigger->tg_trigger->tgname;
    const EscrowColumn* column = escrow_of_trigger(info, name);
    if (column == nullptr)
        raise_forged(trigger->tg_relation, name, "enable_escrow");
    require_own_trigger(trigger->tg_relation, info, *column);
    if (column->attnum == InvalidAttrNumber)
        raise_column_gone(trigger->tg_relation, *column);
    if (column->key_count == 0)
        raise_key_changed(trigger->tg_relation, info, *column);
    return column;
}

static int64 value_in(const RowChange& change, const EscrowColumn& column, TupleTableSlot* row) {
    NullableDatum value = values_in(row)[column.attnum];
    if (value.isnull)
        ereport(ERROR, (errcode(ERRCODE_NOT_NULL_VIOLATION),
                        errmsg("null value in column \"%s\" of table \"%s\", which has escrow "
                               "counters",
                               NameStr(column.name), RelationGetRelationName(change.rel))));
    return amount_of(column, value.value);
}

static void check_limits(const RowChange& change, const EscrowColumn& column) {
    EscrowLimits limits = limits_of(column);
    int64 value = value_in(change, column, change.new_row);
    if (value >= limits.least && value <= limits.most)
        return;
    raise_out_of_limits(change.rel, column);
}

// Else two rows could share a counter.
static void require_unique(const RowChange& change, const EscrowColumn& column) {
    if (key_of_counters(change.info, column) == nullptr)
        raise_key_changed(change.rel, change.info, column);
}

// With all that it points to in the memory of the statement. Null: the row can have none.
static EscrowCounter* counter_in(const RowChange& change, const EscrowColumn& column) {
    HeapTuple row = row_in(change.old_row);
    text* values = counter_key(change.info, column, row);
    if (values == nullptr)
        return nullptr;
    auto* key = static_cast<Key*>(palloc(sizeof(Key)));
    *key = key_of_tuple(change.info, row);
    auto* counter = static_cast<EscrowCounter*>(palloc(sizeof(EscrowCounter)));
    *counter = {{change.rel, change.info, key},
                &column,
                limits_of(column),
                {change.info->relid, &column.label, values},
                0};
    return counter;
}

static void end_counter(const RowChange& change, const EscrowColumn& column) {
    EscrowCounter* counter = counter_in(change, column);
    if (counter == nullptr)
        return;
    enter_gate(*counter, ExclusiveLock);
    find_id(counter);
    if (counter->id == 0)
        return;
    AmountSum sum = {};
    end_parts(*counter, &sum);
    refuse_reservations(change.rel, column, &counter->id, 1);
    if (!sum.is_zero() && change.rel->rd_rel->relispartition)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("a row of partition \"%s\" has changes of escrow counters that are not folded",
                    RelationGetRelationName(change.rel)),
             errhint("Call interlock.fold_escrow, and interlock.disable_escrow: "
                     "partitions cannot have escrow counters.")));
    delete_counter(counter->id);
}

static bool moves_key(const RowChange& change, const EscrowColumn& column) {
    TupleDesc columns = RelationGetDescr(change.rel);
    for (int i = 0; i < column.key_count; i++)
        if (!same_value(columns, change.old_row, change.new_row, column.key[i]))
            return true;
    return false;
}

static bool is_own_write(const RowChange& change, const EscrowColumn& column) {
    return escrow_write != nullptr && !escrow_write->passed &&
           escrow_write->column == column.attnum &&
           escrow_write->row.info->relid == change.info->relid &&
           has_key(escrow_write->row, row_in(change.old_row));
}

[[noreturn]] static void refuse_plain_update(const RowChange& change, const EscrowColumn& column) {
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("column \"%s\" of table \"%s\" has escrow counters", NameStr(column.name),
                    RelationGetRelationName(change.rel)),
             errhint("Change it with interlock.adjust or interlock.set_escrow, and leave it out of "
                     "other updates.")));
}

// With the new value, which the writer knows, the difference tells the stored one.
[[noreturn]] static void refuse_delta(const RowChange& change, const EscrowCounter& counter,
                                      int64 delta, Verdict verdict) {
    const Bitmapset* readable = readable_columns(change.rel, row_in(change.old_row));
    if (!bms_is_member(counter.column->attnum, readable))
        raise_does_not_fit(counter, verdict);
    raise_not_enough(counter, delta, verdict, nullptr);
}

static int64 change_between(const EscrowColumn& column, int64 before, int64 after) {
    int64 delta;
    if (pg_sub_s64_overflow(after, before, &delta) || delta > kMostAmount || delta < -kMostAmount)
        ereport(ERROR,
                (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
                 errmsg("the change of escrow column \"%s\" is too large", NameStr(column.name)),
                 errhint("Set the value with interlock.set_escrow.")));
    return delta;
}

// The row is locked, so the old value is the newest one.
static void change_by_delta(RowChange* change, const EscrowColumn& column, int64 delta,
                            int64 value) {
    EscrowCounter* counter = counter_in(*change, column);
    if (counter == nullptr)
        raise_key_changed(change->rel, change->info, column);
    enter_gate(*counter, ShareLock);
    CounterState after;
    Verdict verdict = change_in_row(counter, {delta, 0}, &value, &after);
    if (verdict != Verdict::kGranted)
        refuse_delta(*change, *counter, delta, verdict);
    put(change, column.attnum, {value_of(column, value), false});
}

// A trigger that keeps the old value would lose the parts that the write replaces.
static void check_own_write(const RowChange& change, const EscrowColumn& column, int64 after) {
    if (after != escrow_write->value || moves_key(change, column))
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("a trigger of table \"%s\" changes what is written for the escrow counters "
                        "of column \"%s\"",
                        RelationGetRelationName(change.rel), NameStr(column.name))));
}

static void check_update(RowChange* change, const EscrowColumn& column) {
    int64 before = value_in(*change, column, change->old_row);
    int64 after = value_in(*change, column, change->new_row);
    if (is_own_write(*change, column)) {
        check_own_write(*change, column, after);
        escrow_write->passed = true;
        return;
    }
    if (moves_key(*change, column)) {
        require_unique(*change, column);
        if (after != before)
            refuse_plain_update(*change, column);
        EscrowCounter* counter = counter_in(*change, column);
        if (counter == nullptr)
            return;
        enter_gate(*counter, ExclusiveLock);
        find_id(counter);
        if (counter->id == 0)
            return;
        AmountSum sum = {after, 0};
        end_parts(*counter, &sum);
        refuse_reservations(change->rel, column, &counter->id, 1);
        delete_counter(counter->id);
        put(change, column.attnum, {value_of(column, sum.amount()), false});
        return;
    }
    if (after == before)
        return;
    if (column.plain_updates == PlainUpdates::kReject)
        refuse_plain_update(*change, column);
    change_by_delta(change, column, change_between(column, before, after), before);
}

} // namespace interlock::escrow

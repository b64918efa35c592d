// The trigger that holds every update to the owners of the columns it changes.

#include "execution/partition_move.h"
#include "execution/row_change.h"
#include "ownership/errors.h"
#include "ownership/value_writers.h"
#include "ownership/write_log.h"
#include "ownership/writer.h"
#include "table/row.h"
#include "table/row_json.h"

namespace interlock::ownership {

namespace {

// One firing of the trigger, and the columns that the update changes without owning them.
struct Update {
    Relation rel;
    const TableInfo* info;
    const Ownership* ownership;
    const TriggerData* trigger;
    HeapTuple old_row;
    HeapTuple new_row;
    Writer writer;
    Bitmapset* rejected;
    Bitmapset* skipped;
    Bitmapset* forced;
    Bitmapset* claimed; // owned once changed, and changed by their writer
};

} // namespace

static bool find_violations(Update* update);
[[noreturn]] static void refuse_update(const Update& update);
static void log_forced(const Update& update);
static void log_skipped(const Update& update);
static NullableDatum value_writers(const Update& update);
static bool keeps_given_writers(const Update& update, NullableDatum writers);
static HeapTuple put_back(const Update& update, NullableDatum writers);

extern "C" {
PG_FUNCTION_INFO_V1(ownership_trigger);

Datum ownership_trigger(PG_FUNCTION_ARGS) {
    Update update = {};
    update.trigger = row_trigger(fcinfo, "ownership_trigger");
    update.old_row = update.trigger->tg_trigtuple;
    if (!TRIGGER_FIRED_BY_UPDATE(update.trigger->tg_event))
        return PointerGetDatum(update.old_row);
    update.new_row = update.trigger->tg_newtuple;
    update.rel = update.trigger->tg_relation;
    update.info = table_info(update.rel);
    update.ownership = usable_ownership(update.rel, update.info);
    if (update.ownership->checked_count > 0)
        refuse_unchecked_move(change_of(update.trigger, update.info));
    count(update.info, CountedKind::kOwnership, Counter::kCalls);
    if (!find_violations(&update) && update.ownership->value_writers == InvalidAttrNumber)
        return PointerGetDatum(update.new_row);
    if (update.rejected != nullptr)
        refuse_update(update);
    if (update.forced != nullptr)
        log_forced(update);
    NullableDatum writers = value_writers(update);
    if (update.skipped == nullptr && keeps_given_writers(update, writers))
        return PointerGetDatum(update.new_row);
    if (update.skipped != nullptr)
        log_skipped(update);
    return PointerGetDatum(put_back(update, writers));
}
}

// Whether a foreign key's action updates the row, as the server runs them. It must not be skipped:
// the key would refer to nothing.
static bool is_referential_action() {
    return InLocalUserIdChange() && InNoForceRLSOperation() && !InSecurityRestrictedOperation();
}

static bool is_in_foreign_key(Relation rel, AttrNumber column) {
    ListCell* cell;
    foreach (cell, RelationGetFKeyList(rel)) {
        const auto* key = static_cast<const ForeignKeyCacheInfo*>(lfirst(cell));
        for (int i = 0; i < key->nkeys; i++)
            if (key->conkey[i] == column)
                return true;
    }
    return false;
}

// Triggers that a referential action fires look like the action itself, so the column must be in
// the foreign key, too.
static bool rejects(const Update& update, const ColumnRule* rule) {
    return rule->on_violation == OnViolation::kReject ||
           (is_referential_action() && is_in_foreign_key(update.rel, rule->column));
}

// The writer, in memory of the row: policies and casts may set another one before the row is done.
static Writer present_writer() {
    Writer writer = current_writer();
    if (writer.name != nullptr)
        writer.name = pstrdup(writer.name);
    return writer;
}

static bool column_changes(const Update& update, AttrNumber column) {
    const TupleTableSlot* old_row = update.trigger->tg_trigslot;
    const TupleTableSlot* new_row = update.trigger->tg_newslot;
    int i = column - 1;
    return !equal_values(RelationGetDescr(update.rel), column,
                         {old_row->tts_values[i], old_row->tts_isnull[i]},
                         {new_row->tts_values[i], new_row->tts_isnull[i]});
}

static NullableDatum stored_writers(const Update& update) {
    int i = update.ownership->value_writers - 1;
    if (i < 0)
        return {0, true};
    const TupleTableSlot* row = update.trigger->tg_trigslot;
    return {row->tts_values[i], row->tts_isnull[i]};
}

static NullableDatum given_writers(const Update& update) {
    const TupleTableSlot* row = update.trigger->tg_newslot;
    int i = update.ownership->value_writers - 1;
    return {row->tts_values[i], row->tts_isnull[i]};
}

// Null: the value belongs to nobody yet.
static const char* owner_of(const Update& update, const ColumnRule* rule) {
    return rule->once_changed ? writer_of_value(stored_writers(update), rule->name) : rule->writer;
}

static bool find_violations(Update* update) {
    const Ownership* ownership = update->ownership;
    if (ownership->last_checked == InvalidAttrNumber)
        return false;
    slot_getsomeattrs(update->trigger->tg_trigslot, ownership->last_checked);
    slot_getsomeattrs(update->trigger->tg_newslot, ownership->last_checked);
    bool asked = false;
    bool found = false;
    for (int i = 0; i < ownership->checked_count; i++) {
        const ColumnRule* rule = ownership->checked[i];
        if (!column_changes(*update, rule->column))
            continue;
        if (!asked)
            update->writer = present_writer();
        asked = true;
        const char* writer = update->writer.name;
        const char* owner = owner_of(*update, rule);
        if (owner == nullptr && writer != nullptr && strcmp(writer, rule->writer) == 0)
            update->claimed = bms_add_member(update->claimed, rule->column);
        if (owner == nullptr || (writer != nullptr && strcmp(writer, owner) == 0))
            continue;
        Bitmapset** columns = update->writer.force     ? &update->forced
                              : rejects(*update, rule) ? &update->rejected
                                                       : &update->skipped;
        *columns = bms_add_member(*columns, rule->column);
        found = true;
    }
    return found;
}

static const char* owner_of(const Update& update, int column) {
    return owner_of(update, rule_of(update.info, column));
}

static const char* first_owner(const Update& update, const Bitmapset* columns) {
    return owner_of(update, bms_next_member(columns, -1));
}

static Bitmapset* owned_by(const Update& update, const Bitmapset* columns, const char* writer) {
    Bitmapset* owned = nullptr;
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;)
        if (strcmp(owner_of(update, column), writer) == 0)
            owned = bms_add_member(owned, column);
    return owned;
}

// Reports the columns of one owner only.
static void refuse_update(const Update& update) {
    count(update.info, CountedKind::kOwnership, Counter::kRefusals);
    const char* owner = first_owner(update, update.rejected);
    const Bitmapset* columns = owned_by(update, update.rejected, owner);
    const char* key =
        readable_key(update.info, readable_columns(update.rel, update.old_row), update.old_row);
    raise_column_owned({update.rel, update.info, key, columns, owner, update.writer.name, false});
}

static WriteSample sample_of(const Update& update, const Bitmapset* columns) {
    const TableInfo* info = update.info;
    WriteSample sample = {};
    if (info->key.count > 0)
        sample.key = key_to_jsonb(info, key_of_tuple(info, update.old_row));
    sample.stored = sample_of_row(info->columns, columns, update.old_row);
    sample.given = sample_of_row(info->columns, columns, update.new_row);
    return sample;
}

// Calls log(columns, owner) for the columns of each owner.
template <typename Log>
static void each_owner(const Update& update, const Bitmapset* columns, Log&& log) {
    Bitmapset* left = bms_copy(columns);
    while (!bms_is_empty(left)) {
        const char* owner = first_owner(update, left);
        Bitmapset* owned = owned_by(update, left, owner);
        log(owned, owner);
        left = bms_del_members(left, owned);
    }
}

static WriteGroup group_of(const Update& update, WriteDecision decision, const char* owner) {
    return {decision, "update", update.ownership->root, InvalidCommandId, owner};
}

static void log_forced(const Update& update) {
    each_owner(update, update.forced, [&](const Bitmapset* columns, const char* owner) {
        log_row(group_of(update, WriteDecision::kForced, owner), sample_of(update, columns),
                update.rel, columns);
    });
}

// A worker that saves an old copy is skipped again and again: all of it is one line.
static void log_skipped(const Update& update) {
    each_owner(update, update.skipped, [&](const Bitmapset* columns, const char* owner) {
        WriteLine* line = count_writes(group_of(update, WriteDecision::kSkipped, owner), 1,
                                       [&] { return sample_of(update, columns); });
        add_columns(line, update.rel, columns);
    });
}

// The writers of values, whatever the statement gives for them.
static NullableDatum value_writers(const Update& update) {
    if (update.ownership->value_writers == InvalidAttrNumber)
        return {0, true};
    if (is_release(update.ownership))
        return given_writers(update);
    if (update.claimed == nullptr)
        return stored_writers(update);
    return with_writer(update.info, stored_writers(update), update.claimed, update.writer.name);
}

static bool keeps_given_writers(const Update& update, NullableDatum writers) {
    AttrNumber column = update.ownership->value_writers;
    return column == InvalidAttrNumber ||
           same_value(TupleDescAttr(RelationGetDescr(update.rel), column - 1), writers,
                      given_writers(update));
}

// The new row with the stored values of the skipped columns, and with the writers of values.
static HeapTuple put_back(const Update& update, NullableDatum writers) {
    int count = bms_num_members(update.skipped) + 1;
    auto* columns = static_cast<int*>(palloc(sizeof(int) * count));
    auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * count));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * count));
    const TupleTableSlot* stored = update.trigger->tg_trigslot;
    int i = 0;
    for (int column = -1; (column = bms_next_member(update.skipped, column)) >= 0; i++) {
        columns[i] = column;
        values[i] = stored->tts_values[column - 1];
        nulls[i] = stored->tts_isnull[column - 1];
    }
    if (update.ownership->value_writers != InvalidAttrNumber) {
        columns[i] = update.ownership->value_writers;
        values[i] = writers.value;
        nulls[i++] = writers.isnull;
    }
    return heap_modify_tuple_by_cols(update.new_row, RelationGetDescr(update.rel), i, columns,
                                     values, nulls);
}

} // namespace interlock::ownership

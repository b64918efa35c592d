#include "escrow/counted_columns.h"
#include "escrow/journal.h"

#include "marker/marker.h"
#include "ownership/ownership.h"
#include "table/mechanism.h"
#include "transition/transition.h"
#include "version/version.h"

namespace interlock::escrow {

// The trigger's row in the catalog is a new one after ENABLE, DISABLE and CREATE OR REPLACE, at
// another place when one transaction does several of them; the table's file after TRUNCATE and a
// rewrite; the column's number when it was dropped and added again. The place counts in that
// transaction alone: VACUUM FULL of the catalog moves the row, and sessions would have two epochs.
uint64 epoch_of(Oid relid, AttrNumber attnum, Oid trigger_oid) {
    uint32 parts[6] = {0, trigger_oid, 0, 0, 0, static_cast<uint32>(attnum)};
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ,
                ObjectIdGetDatum(trigger_oid));
    Relation catalog = table_open(TriggerRelationId, AccessShareLock);
    SysScanDesc scan = systable_beginscan(catalog, TriggerOidIndexId, true, nullptr, 1, &key);
    HeapTuple row = systable_getnext(scan);
    if (HeapTupleIsValid(row)) {
        parts[0] = HeapTupleHeaderGetRawXmin(row->t_data);
        if (TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(row->t_data))) {
            parts[3] = ItemPointerGetBlockNumber(&row->t_self);
            parts[4] = ItemPointerGetOffsetNumber(&row->t_self);
        }
    }
    systable_endscan(scan);
    table_close(catalog, AccessShareLock);
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
    if (HeapTupleIsValid(tuple)) {
        parts[2] = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relfilenode;
        ReleaseSysCache(tuple);
    }
    return hash_bytes_extended(reinterpret_cast<const unsigned char*>(parts), sizeof(parts), 0);
}

// By name: in a restored copy, until enable_escrow is called again.
static bool find_named_columns(const TableInfo* info, const Trigger* trigger, const char* column,
                               int first_key, CountedColumns* columns) {
    columns->column = find_attribute(info->columns, column);
    columns->key_count = Min(argument_count(trigger) - first_key, INDEX_MAX_KEYS);
    for (int i = 0; i < columns->key_count; i++) {
        columns->key[i] = find_attribute(info->columns, trigger->tgargs[first_key + i]);
        if (columns->key[i] == InvalidAttrNumber)
            return false;
    }
    return columns->key_count > 0;
}

// Of types whose input runs no code of others: the trigger may be forged, and the key retyped.
static void set_key(const TableInfo* info, EscrowColumn* column, const CountedColumns& columns) {
    Bitmapset* key = nullptr;
    for (int i = 0; i < columns.key_count; i++) {
        if (columns.key[i] > info->columns->natts || !may_name_counter(info, columns.key[i]))
            return;
        key = bms_add_member(key, columns.key[i]);
    }
    if (bms_num_members(key) != columns.key_count)
        return;
    column->key_count = columns.key_count;
    column->key = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * columns.key_count));
    memcpy(column->key, columns.key, sizeof(AttrNumber) * columns.key_count);
    column->key_columns = key;
}

// False: it is gone, or has another type.
static bool set_column(const TableInfo* info, EscrowColumn* column, AttrNumber attnum) {
    if (attnum == InvalidAttrNumber || attnum > info->columns->natts)
        return false;
    Form_pg_attribute attribute = TupleDescAttr(info->columns, attnum - 1);
    if (attribute->attisdropped ||
        !amount_scale(attribute->atttypid, attribute->atttypmod, &column->scale))
        return false;
    column->name = attribute->attname;
    column->range = range_of_type(attribute->atttypid, attribute->atttypmod);
    column->attnum = attnum;
    column->type = attribute->atttypid;
    return true;
}

// `numbers` and the arguments after it say which columns.
static bool load_columns(TableInfo* info, const Trigger* trigger, int numbers,
                         EscrowColumn* column) {
    CountedColumns columns;
    name_argument(trigger, kColumn, &column->label);
    column->name = column->label;
    if (read_counted_columns(info->relid, trigger, numbers, &columns) ||
        find_named_columns(info, trigger, NameStr(column->label), numbers + 1, &columns))
        set_key(info, column, columns);
    return set_column(info, column, columns.column);
}

static bool is_same(const EscrowColumn& left, const EscrowColumn& right) {
    return strcmp(NameStr(left.label), NameStr(right.label)) == 0 ||
           (left.attnum == right.attnum && left.attnum != InvalidAttrNumber);
}

// Any role with TRIGGER on the table can make another one for the column. Parts would count twice.
static void find_twin(EscrowColumn* column) {
    for (EscrowColumn* other = column->next; other != nullptr; other = other->next)
        if (other->well_formed && is_same(*other, *column)) {
            other->twin = column->trigger;
            column->twin = other->trigger;
        }
}

bool parse_plain_updates(std::string_view word, PlainUpdates* updates) {
    for (PlainUpdates each : {PlainUpdates::kReject, PlainUpdates::kDelta})
        if (word == kPlainUpdateWords[static_cast<int>(each)]) {
            *updates = each;
            return true;
        }
    return false;
}

void load_escrow(TableInfo* info, const Trigger* trigger) {
    auto* column = static_cast<EscrowColumn*>(palloc0(sizeof(EscrowColumn)));
    static_cast<OwnTrigger&>(*column) = own_trigger(info->relid, trigger);
    column->next = facet_of<EscrowColumn>(info, escrow_facet);
    info->facets[escrow_facet] = column;
    EscrowSettings settings;
    column->well_formed = read_settings(trigger, &settings);
    if (!column->well_formed)
        return;
    column->least_text = settings.least_text;
    column->most_text = settings.most_text;
    column->plain_updates = settings.plain_updates;
    column->fold_moves_version = settings.fold_moves_version;
    column->notify = settings.notify;
    bool is_there = load_columns(info, trigger, kColumnNumbers, column);
    find_twin(column);
    if (!is_there)
        return;
    column->epoch = epoch_of(info->relid, column->attnum, column->trigger_oid);
    info->counted = bms_add_member(info->counted, column->attnum);
    if (!column->fold_moves_version)
        info->maintained = bms_add_member(info->maintained, column->attnum);
}

template <typename Condition>
static const EscrowColumn* find_escrow(const TableInfo* info, Condition&& condition) {
    const EscrowColumn* found = nullptr;
    each_escrow(info, [&](const EscrowColumn& column) {
        if (condition(column))
            found = &column;
    });
    return found;
}

const EscrowColumn* escrow_of(const TableInfo* info, AttrNumber attnum) {
    return find_escrow(info,
                       [attnum](const EscrowColumn& column) { return column.attnum == attnum; });
}

const EscrowColumn* escrow_of_trigger(const TableInfo* info, const char* trigger) {
    return find_escrow(info, [trigger](const EscrowColumn& column) {
        return strcmp(column.trigger, trigger) == 0;
    });
}

const EscrowColumn* escrow_of_label(const TableInfo* info, const char* label) {
    return find_escrow(info, [label](const EscrowColumn& column) {
        return strcmp(NameStr(column.label), label) == 0;
    });
}

const EscrowColumn* escrow_left_behind(Relation rel, const TableInfo* info, AttrNumber attnum) {
    const TriggerDesc* triggers = triggers_of(rel);
    for (int i = 0; triggers != nullptr && i < triggers->numtriggers; i++) {
        const Trigger* trigger = &triggers->triggers[i];
        CountedColumns columns;
        if (!trigger_calls(trigger, "escrow_truncate_trigger") || argument_count(trigger) == 0 ||
            !read_counted_columns(info->relid, trigger, kTruncateColumnNumbers, &columns) ||
            columns.column != attnum)
            continue;
        auto* column = static_cast<EscrowColumn*>(palloc0(sizeof(EscrowColumn)));
        column->trigger = pstrdup(trigger->tgname);
        name_argument(trigger, kColumn, &column->label);
        set_key(info, column, columns);
        if (!set_column(info, column, attnum))
            return nullptr;
        column->least_text = DatumGetCString(
            DirectFunctionCall1(numeric_out, numeric_of(*column, column->range.least)));
        column->most_text = "";
        return column;
    }
    return nullptr;
}

const UniqueKey* key_of_counters(const TableInfo* info, const EscrowColumn& column) {
    return column.key_count > 0 ? find_key(info, column.key_columns) : nullptr;
}

static bool is_later(const char* trigger, const EscrowColumn& column) {
    return trigger != nullptr && strcmp(trigger, column.trigger) > 0;
}

// Those of ours that can keep a row as it is, or change it.
static bool fires_last(const TableInfo* info, const EscrowColumn& column) {
    const version::Versioning* versioning = version::versioning_of(info);
    const marker::Marker* marker = marker::marker_of(info);
    const ownership::Ownership* ownership = ownership::ownership_of(info);
    bool last = (versioning == nullptr || !is_later(versioning->trigger, column)) &&
                (marker == nullptr || !is_later(marker->trigger, column)) &&
                (ownership == nullptr || !is_later(ownership->trigger, column));
    for (const transition::StateMachine& machine : transition::machines_of(info))
        last = last && !is_later(machine.trigger, column);
    return last;
}

static const char* list_of_key(const TableInfo* info, const EscrowColumn& column) {
    StringInfoData list;
    initStringInfo(&list);
    for (int i = 0; i < column.key_count; i++)
        appendStringInfo(&list, "%s%s", i == 0 ? "" : ", ",
                         quote_identifier(column_name(info, column.key[i])));
    return list.data;
}

const char* call_of_enable(Relation rel, const EscrowColumn& column) {
    return psprintf("SELECT interlock.enable_escrow(%s, %s, %s, %s, %s, %s%s)",
                    quote_literal_cstr(qualified_name(rel)),
                    quote_literal_cstr(NameStr(column.name)), quote_literal_cstr(column.least_text),
                    column.most_text[0] == '\0' ? "NULL" : quote_literal_cstr(column.most_text),
                    quote_literal_cstr(kPlainUpdateWords[static_cast<int>(column.plain_updates)]),
                    column.fold_moves_version ? "true" : "false",
                    column.notify == Notify::kOff
                        ? ""
                        : psprintf(", notify => '%s'", notify_name(column.notify)));
}

void raise_column_gone(Relation rel, const EscrowColumn& column) {
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("column \"%s\" of table \"%s\", which has escrow counters, is gone or has "
                "another type",
                NameStr(column.label), RelationGetRelationName(rel)),
         errhint("Rename it back, and call interlock.enable_escrow before it is renamed again. "
                 "Only if it was dropped, call interlock.disable_escrow for its former name.")));
}

void raise_key_changed(Relation rel, const TableInfo* info, const EscrowColumn& column) {
    const char* table = RelationGetRelationName(rel);
    if (column.key_count == 0)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("a column of the key of table \"%s\" was renamed, or has another type, "
                        "since its escrow counters were enabled",
                        table),
                 errhint("Change it back, and call interlock.enable_escrow before it is changed "
                         "again.")));
    const char* enable = call_of_enable(rel, column);
    bool is_unique = key_of_counters(info, column) != nullptr;
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("the key of table \"%s\" has changed since its escrow counters were enabled",
                    table),
             is_unique ? errhint("%s", enable)
                       : errhint("ALTER TABLE %s ADD UNIQUE (%s); then %s", qualified_name(rel),
                                 list_of_key(info, column), enable)));
}

void require_own_trigger(Relation rel, const TableInfo* info, const EscrowColumn& column) {
    require_own(rel, info, &column, "enable_escrow");
    if (!sorts_last(column.trigger) || !fires_last(info, column))
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("trigger \"%s\" of table \"%s\" does not fire after all others",
                               column.trigger, RelationGetRelationName(rel)),
                        errhint("Rename the trigger to its original name, which began with %s.",
                                kEscrowTriggerPrefix)));
}

void require_logged(Relation rel) {
    if (rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("table \"%s\" has become unlogged since its escrow counters were enabled",
                    RelationGetRelationName(rel)),
             errdetail("A crash empties the table, but not the journal of its counters."),
             errhint(
                 "If there was a crash, TRUNCATE the table. Then run ALTER TABLE %s SET LOGGED.",
                 qualified_name(rel))));
}

const EscrowColumn* usable_escrow(Relation rel, const TableInfo* info, AttrNumber attnum) {
    const EscrowColumn* column = escrow_of(info, attnum);
    const char* table = RelationGetRelationName(rel);
    if (column == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("column \"%s\" of table \"%s\" has no escrow counters",
                               column_name(info, attnum), table),
                        errhint("Call interlock.enable_escrow for the column.")));
    require_own_trigger(rel, info, *column);
    if (column->enabled != TRIGGER_FIRES_ALWAYS)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("trigger \"%s\" of table \"%s\" does not fire in all sessions",
                               column->trigger, table),
                        errhint("ALTER TABLE %s ENABLE ALWAYS TRIGGER %s", qualified_name(rel),
                                quote_identifier(column->trigger))));
    if (rel->rd_rel->relispartition)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("table \"%s\" has become a partition since its escrow counters were "
                               "enabled",
                               table),
                        errhint("Detach it, or call interlock.disable_escrow.")));
    require_logged(rel);
    if (key_of_counters(info, *column) == nullptr)
        raise_key_changed(rel, info, *column);
    return column;
}

} // namespace interlock::escrow

#include "escrow/journal.h"

#include "marker/marker.h"
#include "ownership/ownership.h"
#include "transition/transition.h"
#include "version/version.h"

namespace interlock {

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

namespace {

// Of types whose input runs no code of others: the trigger may be forged, and the key retyped.
bool has_key(const TableInfo* info, const Trigger* trigger) {
    if (info->key.count == 0 || argument_count(trigger) - kKeyColumns != info->key.count)
        return false;
    for (int i = 0; i < info->key.count; i++)
        if (strcmp(column_name(info, info->key.columns[i].attnum),
                   trigger->tgargs[kKeyColumns + i]) != 0 ||
            !may_name_counter(info, info->key.columns[i].attnum))
            return false;
    return true;
}

// Any role with TRIGGER on the table can make another one for the column. Parts would count twice.
void find_twin(EscrowColumn* column) {
    for (EscrowColumn* other = column->next; other != nullptr; other = other->next)
        if (strcmp(NameStr(other->name), NameStr(column->name)) == 0) {
            other->twin = column->trigger;
            column->twin = other->trigger;
        }
}

} // namespace

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
    column->trigger = pstrdup(trigger->tgname);
    column->enabled = trigger->tgenabled;
    column->next = part_of<EscrowColumn>(info, escrow_part);
    info->parts[escrow_part] = column;
    if (argument_count(trigger) <= kKeyColumns ||
        !parse_plain_updates(trigger->tgargs[kPlainUpdates], &column->plain_updates))
        return;
    name_argument(trigger, kColumn, &column->name);
    find_twin(column);
    column->least_text = pstrdup(trigger->tgargs[kLeast]);
    column->most_text = pstrdup(trigger->tgargs[kMost]);
    column->fold_moves_version = strcmp(trigger->tgargs[kMovesVersion], "true") == 0;
    column->has_key = has_key(info, trigger);
    AttrNumber attnum = find_attribute(info->columns, NameStr(column->name));
    if (attnum == InvalidAttrNumber)
        return;
    Form_pg_attribute attribute = TupleDescAttr(info->columns, attnum - 1);
    if (!amount_scale(attribute->atttypid, attribute->atttypmod, &column->scale))
        return;
    column->range = range_of_type(attribute->atttypid, attribute->atttypmod);
    column->attnum = attnum;
    column->type = attribute->atttypid;
    column->trigger_oid = trigger->tgoid;
    column->epoch = epoch_of(info->relid, attnum, trigger->tgoid);
    info->counted = bms_add_member(info->counted, attnum);
    if (!column->fold_moves_version)
        info->maintained = bms_add_member(info->maintained, attnum);
}

namespace {

template <typename Condition>
const EscrowColumn* find_escrow(const TableInfo* info, Condition&& condition) {
    const EscrowColumn* found = nullptr;
    each_escrow(info, [&](const EscrowColumn& column) {
        if (condition(column))
            found = &column;
    });
    return found;
}

} // namespace

const EscrowColumn* escrow_of(const TableInfo* info, AttrNumber attnum) {
    return find_escrow(info,
                       [attnum](const EscrowColumn& column) { return column.attnum == attnum; });
}

const EscrowColumn* escrow_of_trigger(const TableInfo* info, const char* trigger) {
    return find_escrow(info, [trigger](const EscrowColumn& column) {
        return strcmp(column.trigger, trigger) == 0;
    });
}

const EscrowColumn* escrow_of_name(const TableInfo* info, const char* name) {
    return find_escrow(info, [name](const EscrowColumn& column) {
        return strcmp(NameStr(column.name), name) == 0;
    });
}

namespace {

bool is_later(const char* trigger, const EscrowColumn& column) {
    return trigger != nullptr && strcmp(trigger, column.trigger) > 0;
}

// Those of ours that can keep a row as it is, or change it.
bool fires_last(const TableInfo* info, const EscrowColumn& column) {
    const Versioning* versioning = versioning_of(info);
    const Marker* marker = marker_of(info);
    const Ownership* ownership = ownership_of(info);
    bool last = (versioning == nullptr || !is_later(versioning->trigger, column)) &&
                (marker == nullptr || !is_later(marker->trigger, column)) &&
                (ownership == nullptr || !is_later(ownership->trigger_name, column));
    for (const StateMachine& machine : machines_of(info))
        last = last && !is_later(machine.trigger, column);
    return last;
}

} // namespace

void require_own_trigger(Relation rel, const TableInfo* info, const EscrowColumn& column) {
    if (column.twin != nullptr)
        raise_twins(rel, column.trigger, column.twin, "enable_escrow");
    if (!sorts_last(column.trigger) || !fires_last(info, column))
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("trigger \"%s\" of table \"%s\" does not fire after all others",
                        column.trigger, RelationGetRelationName(rel)),
                 errhint("Give the triggers of pg_interlock the names back that they had: that of "
                         "this one began with %s.",
                         kEscrowTriggerPrefix)));
}

void require_logged(Relation rel) {
    if (rel->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("table \"%s\" has become unlogged since its escrow counters were enabled",
                        RelationGetRelationName(rel)),
                 errdetail("A crash empties it, and not the journal of its counters."),
                 errhint("TRUNCATE it if there was a crash, then ALTER TABLE %s SET LOGGED.",
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
    if (!column->has_key)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("the key of table \"%s\" has changed since its escrow counters were "
                               "enabled",
                               table),
                        errhint("Rename its columns back, or call interlock.disable_escrow.")));
    return column;
}

} // namespace interlock

#include "children/parent.h"

#include "children/foreign_key.h"
#include "execution/returned.h"
#include "execution/write.h"
#include "marker/marker.h"
#include "marker/trigger.h"
#include "server/error.h"
#include "table/mechanism.h"
#include "table/restricted.h"
#include "version/unseen.h"
#include "version/version.h"

namespace interlock::children {

namespace {

// The open table and what names the row.
struct Parent {
    Relation rel;
    const TableInfo* info;
    Key key;
    AttrNumber column; // that a write names: the version, or the status of the marker
};

} // namespace

static const UniqueKey* key_of_columns(Relation rel, const TableInfo* info, ParentColumns* by) {
    Bitmapset* columns = nullptr;
    for (int i = 0; i < by->count; i++)
        columns = bms_add_member(columns, by->columns[i]);
    const UniqueKey* key = find_key(info, columns);
    if (key == nullptr)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("columns of table \"%s\" that a foreign key references no longer "
                               "name one row",
                               RelationGetRelationName(rel)),
                        errhint("They must be NOT NULL, and have a unique index.")));
    for (int i = 0; i < key->count; i++)
        for (int place = 0; place < by->count; place++)
            if (by->columns[place] == key->columns[i].attnum) {
                by->places[i] = place;
                if (key->columns[i].type != by->types[place])
                    ereport(ERROR,
                            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                             errmsg("the type of a key of table \"%s\" has changed during the "
                                    "transaction",
                                    RelationGetRelationName(rel))));
            }
    by->key = key;
    return key;
}

// Zero: there is nothing to move or to ask in this session.
static AttrNumber column_to_write(Relation rel, const TableInfo* info) {
    if (version::versioning_of(info) != nullptr &&
        trigger_fires(version::versioning_of(info)->enabled))
        return version::usable_versioning(rel, info)->column;
    if (marker::marker_of(info) != nullptr && trigger_fires(marker::marker_of(info)->enabled))
        return marker::usable_marker(rel, info)->columns[marker::kStatus].attnum;
    return InvalidAttrNumber;
}

// False when the table is gone, or nothing of it fires. The relation is then closed.
static bool open_parent(const ChangedParent& changed, LOCKMODE mode, Parent* parent) {
    ParentColumns* by = changed.name.by;
    *parent = {};
    parent->rel = try_relation_open(by->table, mode);
    if (parent->rel == nullptr)
        return false;
    parent->info = table_info(parent->rel);
    require_distributable(parent->rel, parent->info->distribution, "guard_children");
    by->has_marker = marker::marker_of(parent->info) != nullptr &&
                     trigger_fires(marker::marker_of(parent->info)->enabled);
    parent->column = column_to_write(parent->rel, parent->info);
    if (parent->column == InvalidAttrNumber) {
        relation_close(parent->rel, NoLock);
        return false;
    }
    parent->key.by = key_of_columns(parent->rel, parent->info, by);
    for (int i = 0; i < by->count; i++)
        parent->key.values[i] = changed.name.values[by->places[i]];
    return true;
}

static void close_parent(const Parent& parent) { relation_close(parent.rel, NoLock); }

// --- Privileges ----------------------------------------------------------------------------------

static bool may_use(Oid relid, const Bitmapset* columns, AclMode right) {
    if (pg_class_aclcheck(relid, GetUserId(), right) == ACLCHECK_OK)
        return true;
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;)
        if (pg_attribute_aclcheck(relid, static_cast<AttrNumber>(column), GetUserId(), right) !=
            ACLCHECK_OK)
            return false;
    return true;
}

static const char* list_columns(const TableInfo* info, const Bitmapset* columns) {
    StringInfoData list;
    initStringInfo(&list);
    for (int column = -1; (column = bms_next_member(columns, column)) >= 0;)
        add_column(&list, column_name(info, static_cast<AttrNumber>(column)));
    return list.data;
}

// Those of UPDATE parent SET version = version WHERE key = ...
static void require_rights(const Parent& parent) {
    Oid relid = RelationGetRelid(parent.rel);
    Bitmapset* written = bms_make_singleton(parent.column);
    Bitmapset* read = bms_union(parent.key.by->attnums, written);
    if (may_use(relid, read, ACL_SELECT) && may_use(relid, written, ACL_UPDATE))
        return;
    const char* user = GetUserNameFromId(GetUserId(), false);
    ereport(ERROR,
            (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
             errmsg("role \"%s\" cannot change children of rows of table \"%s\", which it may not "
                    "update",
                    user, RelationGetRelationName(parent.rel)),
             errhint("GRANT SELECT (%s), UPDATE (%s) ON %s TO %s;", list_columns(parent.info, read),
                     list_columns(parent.info, written), typed_name(parent.rel),
                     quote_identifier(user))));
}

// --- Looking at the row --------------------------------------------------------------------------

static bool is_plain(const Parent& parent) {
    return parent.rel->rd_rel->relkind == RELKIND_RELATION &&
           parent.rel->rd_rel->relam == HEAP_TABLE_AM_OID;
}

namespace {

// A row as the active snapshot sees it.
struct Sight {
    bool found;
    Datum value; // of the column to write; a by-value type
    bool is_null;
};

} // namespace

static Sight sight_in(const Parent& parent, TupleTableSlot* slot) {
    Sight sight = {true, 0, false};
    sight.value = slot_getattr(slot, parent.column, &sight.is_null);
    return sight;
}

static Sight see_by_statement(const Parent& parent) {
    Sight sight = {};
    Snapshot snapshot = GetActiveSnapshot();
    as_restricted(parent.rel->rd_rel->relowner, SECURITY_NOFORCE_RLS, [&] {
        with_spi([&] {
            PlanShape shape = {RelationGetRelid(parent.rel), PlanKind("children_parent")};
            shape.subject = parent.column;
            shape.key = parent.key.by->index;
            TablePlan plan = plan_of(shape, [&](Statement* statement) {
                statement->add("SELECT");
                add_returned(statement, " ", parent.info, &parent.column, 1);
                statement->add(" FROM %s t WHERE ", target_of(parent.rel, parent.info));
                add_key_condition(statement, parent.info, parent.key);
            });
            Parameters parameters(parent.key.by->count);
            add_key(&parameters, parent.key);
            sight.found = run_plan_as_of(snapshot, plan, parameters, 1) > 0;
            if (sight.found)
                sight.value =
                    SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &sight.is_null);
        });
    });
    return sight;
}

// Without an index it reads by a statement.
static Sight see(const Parent& parent, Relation index, TupleTableSlot* slot) {
    if (index == nullptr)
        return see_by_statement(parent);
    return probe_key({parent.rel, parent.info, &parent.key}, index, slot) ? sight_in(parent, slot)
                                                                          : Sight{};
}

static bool same_sight(const Sight& left, const Sight& right) {
    return left.found == right.found && left.is_null == right.is_null &&
           (left.is_null || left.value == right.value);
}

namespace {

enum class ParentState : uint8 { kGone, kInserted, kMoved, kStands };

} // namespace

// The same snapshot with and without what this transaction has done: where the two differ, it has
// moved the version itself, or inserted the row.
static ParentState state_in_snapshot(const Parent& parent, Relation index, TupleTableSlot* slot) {
    Sight now = see(parent, index, slot);
    if (!now.found)
        return ParentState::kGone;
    GetActiveSnapshot()->curcid = FirstCommandId;
    Sight before = see(parent, index, slot);
    if (!before.found)
        return ParentState::kInserted;
    return same_sight(now, before) ? ParentState::kStands : ParentState::kMoved;
}

static bool is_in_latest_snapshot(const Parent& parent, Relation index, TupleTableSlot* slot) {
    PushActiveSnapshot(GetLatestSnapshot());
    bool found = see(parent, index, slot).found;
    PopActiveSnapshot();
    return found;
}

static ParentState state_of(const Parent& parent) {
    CommandCounterIncrement();
    Relation index = is_plain(parent) ? open_key_index(*parent.key.by, AccessShareLock) : nullptr;
    TupleTableSlot* slot = index != nullptr ? table_slot_create(parent.rel, nullptr) : nullptr;
    PushCopiedSnapshot(GetTransactionSnapshot());
    ParentState state = state_in_snapshot(parent, index, slot);
    PopActiveSnapshot();
    if (state == ParentState::kGone && IsolationUsesXactSnapshot() &&
        is_in_latest_snapshot(parent, index, slot))
        raise_concurrent_update();
    if (slot != nullptr)
        ExecDropSingleTupleTableSlot(slot);
    if (index != nullptr)
        index_close(index, NoLock);
    return state;
}

// --- Asking it -----------------------------------------------------------------------------------

// move_parent() moves it as another user, and does not ask this one.
static bool is_noted_for_another(const ChangedParent& changed) {
    return changed.noted && changed.user != GetUserId();
}

// Before this transaction.
static bool was_there(const Parent& parent, Relation index) {
    TupleTableSlot* slot = index != nullptr ? table_slot_create(parent.rel, nullptr) : nullptr;
    PushCopiedSnapshot(GetLatestSnapshot());
    GetActiveSnapshot()->curcid = FirstCommandId;
    bool found = see(parent, index, slot).found;
    PopActiveSnapshot();
    if (slot != nullptr)
        ExecDropSingleTupleTableSlot(slot);
    return found;
}

// A row that this transaction has written is the newest version of one that was there, or of one
// that it has inserted, which no other session has seen.
static bool needs_rights(const ChangedParent& changed, const Parent& parent, Relation index,
                         TupleTableSlot* row) {
    return !TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(row_in(row)->t_data)) ||
           (is_noted_for_another(changed) && was_there(parent, index));
}

static void ask(const ChangedParent& changed, const Parent& parent, Relation index,
                TupleTableSlot* row) {
    if (needs_rights(changed, parent, index, row))
        require_rights(parent);
    const marker::Marker* marker = marker::marker_of(parent.info);
    if (marker != nullptr && trigger_fires(marker->enabled))
        marker::refuse_if_marked(parent.rel, parent.info, row);
}

// --- Moving it -----------------------------------------------------------------------------------

static bool write(const Parent& parent) {
    RowWrite write({parent.rel, parent.info, &parent.key}, PlanKind("children_move"));
    write.keep(parent.column);
    bool written = false;
    version::as_unseen_write(RelationGetRelid(parent.rel), [&] { written = write_row(write); });
    return written;
}

// A row that was deleted while we waited for it may have been inserted again.
static void move(const Parent& parent) {
    constexpr int kAttempts = 3;
    for (int i = 0; i < kAttempts; i++) {
        ParentState state = state_of(parent);
        if (state == ParentState::kGone || state == ParentState::kInserted)
            return;
        require_rights(parent); // another role's function may have moved it
        if (state == ParentState::kMoved || write(parent))
            return;
    }
    raise_suppressed(parent.rel);
}

static void open_and_move(const ChangedParent& changed) {
    Parent parent;
    if (!open_parent(changed, RowExclusiveLock, &parent))
        return;
    move(parent);
    close_parent(parent);
}

void ask_parent(const ChangedParent& changed) {
    Parent parent;
    if (!open_parent(changed, AccessShareLock, &parent))
        return;
    Relation index = is_plain(parent) ? open_key_index(*parent.key.by, AccessShareLock) : nullptr;
    if (index != nullptr) {
        TupleTableSlot* slot = table_slot_create(parent.rel, nullptr);
        PushActiveSnapshot(GetLatestSnapshot());
        if (probe_key({parent.rel, parent.info, &parent.key}, index, slot))
            ask(changed, parent, index, slot);
        PopActiveSnapshot();
        ExecDropSingleTupleTableSlot(slot);
        index_close(index, NoLock);
    } else if (is_noted_for_another(changed) && was_there(parent, index)) {
        require_rights(parent);
    }
    close_parent(parent);
}

// Where the change was made by a SECURITY DEFINER function, its owner's triggers of the parent find
// what they name as they would have found it then, and not what the caller puts before it. From
// PostgreSQL 18 on a deferred trigger runs as that owner itself, but with the caller's search_path.
void move_parent(const ChangedParent& changed) {
    if (changed.user == GetUserId() && !InLocalUserIdChange()) {
        open_and_move(changed);
        return;
    }
    as_user(changed.user, SECURITY_LOCAL_USERID_CHANGE, [&] {
        with_settings([&] {
            (void)set_config_option("search_path", changed.search_path, PGC_USERSET, PGC_S_SESSION,
                                    GUC_ACTION_SAVE, true, 0, false);
            open_and_move(changed);
        });
    });
}

bool find_parent_key(ParentColumns* by) {
    Relation rel = try_relation_open(by->table, AccessShareLock);
    if (rel == nullptr)
        return false;
    key_of_columns(rel, table_info(rel), by);
    relation_close(rel, NoLock);
    return true;
}

} // namespace interlock::children

// Guarding children: checks the foreign key and the parent, and creates the triggers.

#include "children/children.h"
#include "children/foreign_key.h"
#include "children/parent.h"
#include "marker/marker.h"
#include "server/arguments.h"
#include "server/scope.h"
#include "table/configuration_audit.h"
#include "table/mechanism.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "version/version.h"

namespace interlock::children {

constexpr const char* kTriggerPrefix = "zzz_interlock_children";
constexpr const char* kTriggerFunction = "children_trigger";

static ForeignKey foreign_key_argument(const Arguments& arguments, int n, Relation child,
                                       Relation parent);
static void check_parent(Relation parent);
static void check_key(Relation child, Relation parent, const ForeignKey& key);
static void refuse_circle(Relation child, Relation parent);
static const ChildGuard* present_guard(Relation child, Relation parent, const ForeignKey& key);
static List* commands_to_create(Relation child, Relation parent, const ForeignKey& key);
static void run_all(List* commands);

extern "C" {
PG_FUNCTION_INFO_V1(guard_children);
PG_FUNCTION_INFO_V1(unguard_children);

// guard_children(child, parent, foreign_key)
Datum guard_children(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Oid parent_oid = DatumGetObjectId(arguments.required(1, "parent"));
    Relation child =
        open_own_table(DatumGetObjectId(arguments.required(0, "child")), ShareRowExclusiveLock);
    TableChange change = begin_change(arguments, child);
    Relation parent = open_table(parent_oid, AccessShareLock, ACL_TRIGGER);
    require_enableable(parent, arguments.function_name());
    ForeignKey key = foreign_key_argument(arguments, 2, child, parent);
    const ChildGuard* present = present_guard(child, parent, key);
    if (present != nullptr)
        refuse_partition(child, present->is_clone);
    check_parent(parent);
    check_key(child, parent, key);
    refuse_circle(child, parent);
    List* commands = commands_to_create(child, parent, key);
    close_table(parent);
    close_table(child);
    run_all(commands);
    record_change(change);
    PG_RETURN_VOID();
}

// unguard_children(child, parent)
Datum unguard_children(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Oid parent = DatumGetObjectId(arguments.required(1, "parent"));
    move_pending_parents(); // the server drops the events of triggers that are gone
    Relation child =
        open_own_table(DatumGetObjectId(arguments.required(0, "child")), AccessExclusiveLock);
    TableChange change = begin_change(arguments, child);
    List* commands = NIL;
    for (const ChildGuard& guard : guards_of(table_info(child))) {
        if (guard.parent != parent)
            continue;
        refuse_partition(child, guard.is_clone);
        for (const char* trigger : guard.triggers)
            if (trigger != nullptr)
                commands =
                    lappend(commands, psprintf("DROP TRIGGER %s ON %s", quote_identifier(trigger),
                                               qualified_name(child)));
    }
    if (commands == NIL) {
        const char* name = get_rel_name(parent);
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("rows of table \"%s\" are not guarded as children of table \"%s\"",
                               RelationGetRelationName(child),
                               name != nullptr ? name : psprintf("%u", parent))));
    }
    close_table(child);
    run_all(commands);
    record_change(change);
    PG_RETURN_VOID();
}
}

// --- The foreign key -----------------------------------------------------------------------------

// Calls visit(key) for each foreign key from child to parent.
template <typename Visit>
static void each_foreign_key_to(Relation parent, Relation child, Visit&& visit) {
    each_foreign_key(RelationGetRelid(child), [&](const ForeignKey& key) {
        if (key.parent == RelationGetRelid(parent))
            visit(key);
    });
}

static const char* column_of(Relation rel, AttrNumber column) {
    return NameStr(TupleDescAttr(RelationGetDescr(rel), column - 1)->attname);
}

static const char* list_columns(Relation rel, const AttrNumber* columns, int count) {
    StringInfoData list;
    initStringInfo(&list);
    for (int i = 0; i < count; i++)
        add_column(&list, column_of(rel, columns[i]));
    return list.data;
}

static bool is_over(const ForeignKey& key, const Bitmapset* columns) {
    Bitmapset* own = nullptr;
    for (int i = 0; i < key.count; i++)
        own = bms_add_member(own, key.columns[i]);
    return bms_equal(own, columns);
}

[[noreturn]] static void refuse_foreign_key(Relation child, Relation parent, const char* present,
                                            int count) {
    const char* child_name = RelationGetRelationName(child);
    const char* parent_name = RelationGetRelationName(parent);
    bool is_reverse = false;
    each_foreign_key_to(child, parent, [&](const ForeignKey&) { is_reverse = true; });
    if (count == 0)
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("table \"%s\" has no foreign key to table \"%s\"", child_name, parent_name),
                 is_reverse ? errhint("Table \"%s\" references table \"%s\": it is the child, and "
                                      "comes first.",
                                      parent_name, child_name)
                            : errhint("Add a foreign key from the rows to their parent.")));
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("table \"%s\" has several foreign keys to table \"%s\"", child_name,
                           parent_name),
                    errhint("Name the columns of the foreign key to use in argument "
                            "\"foreign_key\", for example ARRAY['%s']. The foreign keys are: %s.",
                            "document_id", present)));
}

static ForeignKey foreign_key_argument(const Arguments& arguments, int n, Relation child,
                                       Relation parent) {
    bool is_named = !arguments.is_null(n);
    Bitmapset* columns = nullptr;
    if (is_named) {
        NameList names = arguments.names(n, "foreign_key");
        for (int i = 0; i < names.count; i++)
            columns = bms_add_member(columns, column_number(child, names[i]));
        if (names.count == 0)
            refuse_empty("foreign_key", "Leave it out if there is only one.");
    }
    ForeignKey found = {};
    int fitting = 0;
    int count = 0;
    StringInfoData present;
    initStringInfo(&present);
    each_foreign_key_to(parent, child, [&](const ForeignKey& key) {
        appendStringInfo(&present, "%s(%s)", count++ > 0 ? ", " : "",
                         list_columns(child, key.columns, key.count));
        if (is_named && !is_over(key, columns))
            return;
        if (fitting++ == 0)
            found = key;
    });
    if (fitting == 0 || (fitting > 1 && !is_named))
        refuse_foreign_key(child, parent, present.data, count);
    return found;
}

static const ChildGuard* present_guard(Relation child, Relation parent, const ForeignKey& key) {
    CallShape shape = {};
    shape.parent = RelationGetRelid(parent);
    shape.count = key.count;
    memcpy(shape.columns, key.columns, sizeof(AttrNumber) * key.count);
    return find_guard(table_info(child), shape);
}

// --- The parent ----------------------------------------------------------------------------------

static bool is_in_index(Oid index, AttrNumber column) {
    HeapTuple tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
    if (!HeapTupleIsValid(tuple))
        return false;
    auto* form = reinterpret_cast<Form_pg_index>(GETSTRUCT(tuple));
    bool found = false;
    if (form->indisunique && heap_attisnull(tuple, Anum_pg_index_indpred, nullptr) &&
        heap_attisnull(tuple, Anum_pg_index_indexprs, nullptr))
        for (int i = 0; i < form->indnkeyatts; i++)
            found = found || form->indkey.values[i] == column;
    ReleaseSysCache(tuple);
    return found;
}

// A row whose version is part of a key is locked as for a change of the key when the version moves.
// That excludes the locks that the foreign keys of other writers hold on it: each would wait for
// the others.
static void refuse_version_in_key(Relation parent, AttrNumber version) {
    ListCell* cell;
    foreach (cell, RelationGetIndexList(parent))
        if (is_in_index(lfirst_oid(cell), version))
            ereport(ERROR,
                    (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                     errmsg("version column \"%s\" of table \"%s\" is in unique index \"%s\"",
                            column_of(parent, version), RelationGetRelationName(parent),
                            get_rel_name(lfirst_oid(cell))),
                     errdetail("Writers of children of one row would deadlock."),
                     errhint("Replace the index by one without the version.")));
}

static void check_parent(Relation parent) {
    const TableInfo* info = table_info(parent);
    if (version::versioning_of(info) != nullptr)
        refuse_version_in_key(parent, version::usable_versioning(parent, info)->column);
    else if (marker::marker_of(info) != nullptr)
        marker::usable_marker(parent, info);
    else
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("table \"%s\" has neither versions nor markers",
                        RelationGetRelationName(parent)),
                 errhint("Its owner can enable them: %s", call_for("enable_versioning", parent))));
}

static void check_key(Relation child, Relation parent, const ForeignKey& key) {
    const TableInfo* info = table_info(parent);
    Bitmapset* columns = nullptr;
    for (int i = 0; i < key.count; i++)
        columns = bms_add_member(columns, key.parents[i]);
    if (find_key(info, columns) == nullptr)
        ereport(
            ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("columns (%s) of table \"%s\" do not name one row",
                    list_columns(parent, key.parents, key.count), RelationGetRelationName(parent)),
             errhint("They are the key that table \"%s\" references: make them NOT NULL.",
                     RelationGetRelationName(child))));
}

static bool leads_to(Oid table, Oid child, int depth) {
    if (table == child || depth > kMostLevels)
        return true;
    Relation rel = try_relation_open(table, AccessShareLock);
    if (rel == nullptr)
        return false;
    CHECK_FOR_INTERRUPTS();
    bool found = false;
    for (const ChildGuard& guard : guards_of(table_info(rel)))
        found = found || leads_to(guard.parent, child, depth + 1);
    relation_close(rel, AccessShareLock); // which the caller may have no right to keep
    return found;
}

// A change would go up for ever, or rows of one table would be locked in no order.
static void refuse_circle(Relation child, Relation parent) {
    if (!leads_to(RelationGetRelid(parent), RelationGetRelid(child), 1))
        return;
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("rows of table \"%s\" cannot be children of table \"%s\"",
                           RelationGetRelationName(child), RelationGetRelationName(parent)),
                    errdetail("A table cannot be its own ancestor, and a table can have at most %d "
                              "levels of parents.",
                              kMostLevels)));
}

// --- The triggers --------------------------------------------------------------------------------

constexpr const char* kEvents[kChildEvents] = {"insert", "update", "delete"};

// The name of three triggers, before the event's name, of which none is there yet.
static const char* free_name(Relation child, const ForeignKey& key) {
    StringInfoData columns;
    initStringInfo(&columns);
    for (int i = 0; i < key.count; i++)
        appendStringInfo(&columns, "%s%s", i > 0 ? "_" : "", column_of(child, key.columns[i]));
    for (int number = 0;; number++) {
        CHECK_FOR_INTERRUPTS();
        // In front, as makeObjectName() cuts the end off.
        const char* name = number == 0 ? columns.data : psprintf("%d_%s", number, columns.data);
        bool taken = false;
        for (const char* event : kEvents)
            taken = taken ||
                    OidIsValid(get_trigger_oid(RelationGetRelid(child),
                                               makeObjectName(kTriggerPrefix, name, event), true));
        if (!taken)
            return pstrdup(name);
    }
}

static void add_values(StringInfo call, Relation child, const ForeignKey& key, const char* side) {
    for (int i = 0; i < key.count; i++)
        appendStringInfo(call, ", %s.%s", side, quote_identifier(column_of(child, key.columns[i])));
}

static const char* call_in(Relation child, Relation parent, const ForeignKey& key, int event) {
    StringInfoData call;
    initStringInfo(&call);
    appendStringInfo(
        &call, "%s(%s::pg_catalog.regclass, %s.tableoid", own_trigger_function_name(kChangesParent),
        quote_literal_cstr(qualified_name(parent)), event == kChildDeletes ? "old" : "new");
    if (event == kChildUpdates)
        appendStringInfoString(&call, ", old.ctid, new.ctid");
    if (event != kChildInserts)
        add_values(&call, child, key, "old");
    if (event != kChildDeletes)
        add_values(&call, child, key, "new");
    appendStringInfoChar(&call, ')');
    return call.data;
}

// Those that are there stay, and keep their state.
static List* commands_to_create(Relation child, Relation parent, const ForeignKey& key) {
    const ChildGuard* present = present_guard(child, parent, key);
    const char* name = free_name(child, key);
    List* commands = NIL;
    for (int event = 0; event < kChildEvents; event++) {
        if (present != nullptr && present->triggers[event] != nullptr)
            continue;
        commands = lappend(
            commands,
            psprintf("CREATE CONSTRAINT TRIGGER %s AFTER %s ON %s DEFERRABLE INITIALLY DEFERRED "
                     "FOR EACH ROW WHEN (%s) EXECUTE FUNCTION %s()",
                     quote_identifier(makeObjectName(kTriggerPrefix, name, kEvents[event])),
                     kEvents[event], qualified_name(child), call_in(child, parent, key, event),
                     own_trigger_function_name(kTriggerFunction)));
    }
    return commands;
}

static void run_all(List* commands) {
    with_spi([&] {
        ListCell* cell;
        foreach (cell, commands)
            run_command(static_cast<char*>(lfirst(cell)));
    });
}

} // namespace interlock::children

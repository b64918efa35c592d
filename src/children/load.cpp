// Reading the configuration of children: from WHEN of their triggers and from the foreign keys.

#include "children/children.h"

#include "children/foreign_key.h"
#include "table/mechanism.h"
#include "table/own_table.h"
#include "table/relation_code.h"

namespace interlock::children {

const FuncExpr* call_in_when(Node* expression) {
    if (expression == nullptr || !IsA(expression, FuncExpr))
        return nullptr;
    auto* call = reinterpret_cast<FuncExpr*>(expression);
    const char* name = get_func_name(call->funcid);
    bool is_ours = name != nullptr && strcmp(name, kChangesParent) == 0 &&
                   get_func_namespace(call->funcid) == internal_schema();
    return is_ours ? call : nullptr;
}

// The places of one side's columns, which stand together.
static bool add_column(CallShape* shape, int* values, int argument, int* seen, AttrNumber column) {
    if (*values < 0)
        *values = argument;
    int n = (*seen)++;
    if (argument != *values + n || n >= INDEX_MAX_KEYS)
        return false;
    if (n < shape->count)
        return shape->columns[n] == column;
    shape->columns[shape->count++] = column;
    return true;
}

// The first argument.
static Oid parent_in(const FuncExpr* call) {
    auto* argument = call->args != NIL ? static_cast<Node*>(linitial(call->args)) : nullptr;
    if (argument == nullptr || !IsA(argument, Const))
        return InvalidOid;
    auto* constant = reinterpret_cast<Const*>(argument);
    bool is_table = constant->consttype == REGCLASSOID && !constant->constisnull;
    return is_table ? DatumGetObjectId(constant->constvalue) : InvalidOid;
}

bool read_call(const FuncExpr* call, int old_side, int new_side, CallShape* shape) {
    *shape = {};
    shape->parent = parent_in(call);
    shape->old_values = shape->new_values = shape->table = shape->old_place = shape->new_place = -1;
    int old_seen = 0;
    int new_seen = 0;
    for (int i = 1; i < list_length(call->args); i++) {
        auto* argument = static_cast<Node*>(list_nth(call->args, i));
        if (!IsA(argument, Var))
            return false;
        auto* var = reinterpret_cast<Var*>(argument);
        bool is_old = static_cast<int>(var->varno) == old_side;
        if (!is_old && static_cast<int>(var->varno) != new_side)
            return false;
        if (var->varattno == TableOidAttributeNumber)
            shape->table = i;
        else if (var->varattno == SelfItemPointerAttributeNumber)
            (is_old ? shape->old_place : shape->new_place) = i;
        else if (var->varattno <= 0 ||
                 !add_column(shape, is_old ? &shape->old_values : &shape->new_values, i,
                             is_old ? &old_seen : &new_seen, var->varattno))
            return false;
    }
    bool is_update = old_seen > 0 && new_seen > 0;
    return OidIsValid(shape->parent) && shape->table >= 0 && shape->count > 0 &&
           (old_seen == 0 || old_seen == shape->count) &&
           (new_seen == 0 || new_seen == shape->count) &&
           is_update == (shape->old_place >= 0 && shape->new_place >= 0);
}

static bool is_about(const ChildGuard& guard, const CallShape& shape) {
    if (guard.parent != shape.parent || guard.count != shape.count)
        return false;
    for (int i = 0; i < guard.count; i++)
        if (guard.columns[i].column != shape.columns[i])
            return false;
    return true;
}

static ChildGuard* add_guard(TableInfo* info, const CallShape& shape, const Trigger* trigger) {
    for (ChildGuard& guard : guards_of(info))
        if (is_about(guard, shape))
            return &guard;
    auto* guard = add_item<ChildGuard>(info, children_facet);
    guard->parent = shape.parent;
    guard->root = root_of_trigger(info->relid, trigger);
    guard->is_clone = trigger->tgisclone;
    guard->count = shape.count;
    guard->columns = static_cast<ChildColumn*>(palloc0(sizeof(ChildColumn) * shape.count));
    for (int i = 0; i < shape.count; i++)
        guard->columns[i].column = shape.columns[i];
    return guard;
}

static bool read_event(const Trigger* trigger, const CallShape& shape, ChildEvent* event) {
    constexpr int16 kAllEvents =
        TRIGGER_TYPE_INSERT | TRIGGER_TYPE_UPDATE | TRIGGER_TYPE_DELETE | TRIGGER_TYPE_TRUNCATE;
    bool has_old = shape.old_values >= 0;
    bool has_new = shape.new_values >= 0;
    if (!TRIGGER_FOR_ROW(trigger->tgtype) || !TRIGGER_FOR_AFTER(trigger->tgtype))
        return false;
    switch (trigger->tgtype & kAllEvents) {
    case TRIGGER_TYPE_INSERT:
        *event = kChildInserts;
        return has_new;
    case TRIGGER_TYPE_UPDATE:
        *event = kChildUpdates;
        return has_old && has_new;
    case TRIGGER_TYPE_DELETE:
        *event = kChildDeletes;
        return has_old;
    default:
        return false;
    }
}

bool read_settings(const Trigger* trigger, ChildSettings* settings) {
    if (trigger->tgqual == nullptr || argument_count(trigger) > 0)
        return false;
    const FuncExpr* call = call_in_when(static_cast<Node*>(stringToNode(trigger->tgqual)));
    return call != nullptr && read_call(call, PRS2_OLD_VARNO, PRS2_NEW_VARNO, &settings->call) &&
           read_event(trigger, settings->call, &settings->event);
}

void load_guard(TableInfo* info, const Trigger* trigger) {
    ChildSettings settings;
    if (read_settings(trigger, &settings))
        add_guard(info, settings.call, trigger)->triggers[settings.event] =
            pstrdup(trigger->tgname);
}

KeyCast key_cast(Oid from, Oid to, Oid* function) {
    *function = InvalidOid;
    switch (find_coercion_pathway(to, from, COERCION_ASSIGNMENT, function)) {
    case COERCION_PATH_RELABELTYPE:
        return KeyCast::kSame;
    case COERCION_PATH_FUNC:
        return KeyCast::kCalls;
    case COERCION_PATH_COERCEVIAIO:
        return KeyCast::kByText;
    default:
        return KeyCast::kNone;
    }
}

static bool is_integer(Oid type) { return type == INT2OID || type == INT4OID || type == INT8OID; }

static void load_cast(ChildColumn* column, MemoryContext memory) {
    if (column->type == column->parent_type)
        return;
    if (is_integer(column->type) && is_integer(column->parent_type)) {
        column->cast = KeyCast::kInteger;
        return;
    }
    if (!is_built_in(column->type) || !is_built_in(column->parent_type)) {
        column->cast = KeyCast::kAsked;
        return;
    }
    Oid function;
    column->cast = key_cast(column->type, column->parent_type, &function);
    if (column->cast == KeyCast::kCalls && !is_built_in(function))
        column->cast = KeyCast::kAsked; // a superuser's
    else if (column->cast == KeyCast::kCalls)
        fmgr_info_cxt(function, &column->function, memory);
}

static void load_column(const TableInfo* info, const ChildGuard& guard, ChildColumn* column) {
    column->type = getBaseType(TupleDescAttr(info->columns, column->column - 1)->atttypid);
    Oid type = get_atttype(guard.parent, column->parent);
    column->cast = KeyCast::kNone;
    if (!OidIsValid(type))
        return;
    column->parent_type = getBaseType(type);
    get_typlenbyval(column->parent_type, &column->length, &column->by_value);
    column->cast = KeyCast::kSame;
    load_cast(column, info->memory);
}

// Takes the parent's columns from the constraint, if it is the guard's. Of several over the same
// columns the first in the order of names counts.
static void take_foreign_key(ChildGuard* guard, const ForeignKey& key) {
    if (guard->has_key || key.parent != guard->parent || key.count != guard->count)
        return;
    for (int i = 0; i < guard->count; i++)
        if (key.columns[i] != guard->columns[i].column)
            return;
    for (int i = 0; i < guard->count; i++)
        guard->columns[i].parent = key.parents[i];
    guard->has_key = true;
}

void load_foreign_keys(TableInfo* info) {
    if (info->facets[children_facet] == nullptr)
        return;
    each_foreign_key(info->relid, [&](const ForeignKey& key) {
        for (ChildGuard& guard : guards_of(info))
            take_foreign_key(&guard, key);
    });
    for (ChildGuard& guard : guards_of(info))
        for (int n = 0; guard.has_key && n < guard.count; n++)
            load_column(info, guard, &guard.columns[n]);
}

const ChildGuard* find_guard(const TableInfo* info, const CallShape& shape) {
    for (const ChildGuard& guard : guards_of(info))
        if (is_about(guard, shape))
            return &guard;
    return nullptr;
}

void require_foreign_key(Relation child, const TableInfo* info, const ChildGuard& guard) {
    if (guard.has_key)
        return;
    if (distribution_of(guard.parent) != Distribution::kNone) {
        Relation parent = table_open(guard.parent, AccessShareLock);
        require_distributable(parent, distribution_of(guard.parent), "guard_children");
        table_close(parent, NoLock);
    }
    StringInfoData columns;
    initStringInfo(&columns);
    for (int i = 0; i < guard.count; i++)
        add_column(&columns, column_name(info, guard.columns[i].column));
    const char* parent = get_rel_name(guard.parent);
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("rows of table \"%s\" are guarded as children of table \"%s\", but their "
                    "foreign key (%s) is gone",
                    RelationGetRelationName(child), parent != nullptr ? parent : "", columns.data),
             errhint("Add the foreign key again, or call interlock.unguard_children.")));
}

static int levels_above(Oid table, int depth) {
    if (depth > kMostLevels)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("guarded children go up through more than %d tables, or in a circle",
                               kMostLevels),
                        errhint("Call interlock.unguard_children for one of them.")));
    Relation rel = try_relation_open(table, AccessShareLock);
    if (rel == nullptr)
        return 0;
    CHECK_FOR_INTERRUPTS();
    int most = 0;
    for (const ChildGuard& guard : guards_of(table_info(rel)))
        most = Max(most, 1 + levels_above(guard.parent, depth + 1));
    relation_close(rel, AccessShareLock); // which the writer may have no right to keep
    return most;
}

int levels_above(Oid table) { return levels_above(table, 0); }

} // namespace interlock::children

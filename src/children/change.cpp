// changes_parent(): what WHEN of the triggers asks of every row that is written.

#include "children/changed.h"
#include "children/parent.h"
#include "table/row.h"
#include "version/version.h"

namespace interlock::children {

namespace {

// What a place in a statement remembers from row to row.
struct CallSite {
    CallShape shape;
    Oid table;
    const TableInfo* info;
    const ChildGuard* guard;
};

// A row that has been written.
struct Written {
    FunctionCallInfo call;
    const CallSite* site;
    ChangedParent* parents[2]; // that need to be looked at: of the old row, of the new one
    int count;
};

} // namespace

static CallSite* call_site(FunctionCallInfo fcinfo);
static bool find_site_guard(CallSite* site, Oid table);
static bool is_restored(const CallSite& site);
static void add_parent(Written* written, int first_value);
static bool changes_row(const Written& written);
static bool look_at(ChangedParent* parent, Oid child);

extern "C" {
PG_FUNCTION_INFO_V1(changes_parent);

// changes_parent(parent, tableoid, [old.ctid, new.ctid,] columns of the old row and of the new one)
Datum changes_parent(PG_FUNCTION_ARGS) {
    CallSite* site = call_site(fcinfo);
    Oid table = DatumGetObjectId(PG_GETARG_DATUM(site->shape.table));
    if (!find_site_guard(site, table) || is_restored(*site))
        PG_RETURN_BOOL(false);
    Written written = {fcinfo, site, {nullptr, nullptr}, 0};
    add_parent(&written, site->shape.old_values);
    add_parent(&written, site->shape.new_values);
    if (written.count == 0 || !changes_row(written))
        PG_RETURN_BOOL(false);
    bool is_first = false;
    for (int i = 0; i < written.count; i++)
        is_first = look_at(written.parents[i], table) || is_first;
    PG_RETURN_BOOL(is_first);
}
}

[[noreturn]] static void refuse_call() {
    ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                    errmsg("function \"%s\" must be called in WHEN of a trigger as "
                           "interlock.guard_children creates it",
                           kChangesParent)));
}

// Only WHEN of a row trigger has these numbers for its two rows, and their system columns: a call
// directly cannot make up a row.
static CallSite* call_site(FunctionCallInfo fcinfo) {
    if (fcinfo->flinfo->fn_extra != nullptr)
        return static_cast<CallSite*>(fcinfo->flinfo->fn_extra);
    Node* expression = fcinfo->flinfo->fn_expr;
    CallShape shape;
    if (expression == nullptr || !IsA(expression, FuncExpr) ||
        !read_call(reinterpret_cast<FuncExpr*>(expression), INNER_VAR, OUTER_VAR, &shape))
        refuse_call();
    auto* site =
        static_cast<CallSite*>(MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(CallSite)));
    site->shape = shape;
    fcinfo->flinfo->fn_extra = site;
    return site;
}

// False for a partitioned table: its rows are those of its partitions, whose triggers fire, too.
static bool find_site_guard(CallSite* site, Oid table) {
    const TableInfo* info = cached_table_info(table);
    if (info != nullptr && info == site->info)
        return site->guard != nullptr;
    Relation rel = try_relation_open(table, AccessShareLock);
    if (rel == nullptr)
        return false;
    bool is_table = rel->rd_rel->relkind == RELKIND_RELATION;
    if (is_table) {
        info = table_info(rel);
        site->table = table;
        site->guard = find_guard(info, site->shape);
        if (site->guard == nullptr)
            refuse_call();
        require_foreign_key(rel, info, *site->guard);
        site->info = info;
    }
    relation_close(rel, NoLock);
    return is_table;
}

// As fires_in_restore(): the foreign key and the parent may be still to come.
static bool is_restored(const CallSite& site) {
    if (!site.guard->is_clone || site.shape.old_values >= 0)
        return false;
    Relation rel = table_open(site.table, AccessShareLock);
    bool restored = is_loaded_by_restore(rel, site.guard->root);
    table_close(rel, NoLock);
    return restored;
}

// --- The parent of a row -------------------------------------------------------------------------

// False for an integer that is none of the parent's type: no row has it.
static bool convert_integer(const ChildColumn& column, Datum* value) {
    int64 number = integer_of(column.type, *value);
    switch (column.parent_type) {
    case INT2OID:
        *value = Int16GetDatum(static_cast<int16>(number));
        return number >= PG_INT16_MIN && number <= PG_INT16_MAX;
    case INT4OID:
        *value = Int32GetDatum(static_cast<int32>(number));
        return number >= PG_INT32_MIN && number <= PG_INT32_MAX;
    default:
        *value = Int64GetDatum(number);
        return true;
    }
}

// A length or a conversion of explicit casts may follow the value.
static Datum call_cast(FmgrInfo* function, Datum value) {
    if (function->fn_nargs == 1)
        return FunctionCall1(function, value);
    if (function->fn_nargs == 2)
        return FunctionCall2(function, value, Int32GetDatum(-1));
    return FunctionCall3(function, value, Int32GetDatum(-1), BoolGetDatum(false));
}

static Datum convert(const ChildColumn& column, Datum value) {
    FmgrInfo asked;
    auto* function = const_cast<FmgrInfo*>(&column.function);
    KeyCast cast = column.cast;
    if (cast == KeyCast::kAsked) {
        Oid oid;
        cast = key_cast(column.type, column.parent_type, &oid);
        if (cast == KeyCast::kCalls)
            fmgr_info(oid, function = &asked);
    }
    switch (cast) {
    case KeyCast::kSame:
    case KeyCast::kInteger:
        return value;
    case KeyCast::kCalls:
        return call_cast(function, value);
    case KeyCast::kByText: {
        Oid output, input, parameter;
        bool is_varlena;
        getTypeOutputInfo(column.type, &output, &is_varlena);
        getTypeInputInfo(column.parent_type, &input, &parameter);
        return OidInputFunctionCall(input, OidOutputFunctionCall(output, value), parameter, -1);
    }
    case KeyCast::kAsked:
    case KeyCast::kNone:
        break;
    }
    ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                    errmsg("cannot convert type %s to %s of the parent's key",
                           format_type_be(column.type), format_type_be(column.parent_type))));
}

// The types of the arguments are those of the columns: this is the table of the trigger.
static ChangedParent* parent_of(const Written& written, int first_value) {
    const ChildGuard& guard = *written.site->guard;
    Datum values[INDEX_MAX_KEYS];
    for (int i = 0; i < guard.count; i++) {
        const NullableDatum& argument = written.call->args[first_value + i];
        if (argument.isnull)
            return nullptr;
        values[i] = convert(guard.columns[i], argument.value);
        if (guard.columns[i].cast == KeyCast::kInteger &&
            !convert_integer(guard.columns[i], &values[i]))
            return nullptr;
        if (guard.columns[i].length == -1)
            values[i] = PointerGetDatum(PG_DETOAST_DATUM_PACKED(values[i]));
    }
    return changed_parent(guard, values);
}

// Once for each user, also where the parent is noted or moved: it is moved as the first of them.
static bool is_to_be_asked(const ChangedParent& parent) {
    return parent.asked_by != GetUserId() || (parent.name.by->has_marker && !parent.moved &&
                                              parent.asked != GetCurrentCommandId(false));
}

static void add_parent(Written* written, int first_value) {
    ChangedParent* parent = first_value < 0 ? nullptr : parent_of(*written, first_value);
    if (parent == nullptr || (parent->noted && !is_to_be_asked(*parent)) ||
        (written->count > 0 && written->parents[0] == parent))
        return;
    written->parents[written->count++] = parent;
}

// --- Whether an update counts --------------------------------------------------------------------

// A versioned row has changed if its version has moved; another one, if a column has that is none
// of a marker's.
static bool differ(const TableInfo* info, TupleTableSlot* old_row, TupleTableSlot* new_row) {
    const version::Versioning* versioning = version::versioning_of(info);
    if (versioning != nullptr && versioning->column != InvalidAttrNumber &&
        trigger_fires(versioning->enabled))
        return !same_value(info->columns, old_row, new_row, versioning->column);
    for (int column = 1; column <= info->columns->natts; column++)
        if (!TupleDescAttr(info->columns, column - 1)->attisdropped &&
            !bms_is_member(column, info->maintained) &&
            !same_value(info->columns, old_row, new_row, column))
            return true;
    return false;
}

static bool fetch(Relation rel, Datum place, TupleTableSlot* slot) {
    return table_tuple_fetch_row_version(
        rel, static_cast<ItemPointer>(static_cast<void*>(DatumGetPointer(place))), SnapshotAny,
        slot);
}

static bool changes_row(const Written& written) {
    const CallShape& shape = written.site->shape;
    if (shape.old_place < 0 || written.count == 2) // not an update, or the row moves
        return true;
    Relation rel = table_open(written.site->table, AccessShareLock);
    TupleTableSlot* old_row = table_slot_create(rel, nullptr);
    TupleTableSlot* new_row = table_slot_create(rel, nullptr);
    bool changes = !fetch(rel, written.call->args[shape.old_place].value, old_row) ||
                   !fetch(rel, written.call->args[shape.new_place].value, new_row) ||
                   differ(written.site->info, old_row, new_row);
    ExecDropSingleTupleTableSlot(old_row);
    ExecDropSingleTupleTableSlot(new_row);
    table_close(rel, NoLock);
    return changes;
}

// --- Its parent ----------------------------------------------------------------------------------

// Checks again for each command, so that a marker that was taken since is met at the row, and not
// only at the end of the transaction. Returns whether the parent is noted by this change.
static bool look_at(ChangedParent* parent, Oid child) {
    ask_parent(*parent);
    parent->asked = GetCurrentCommandId(false);
    parent->asked_by = GetUserId();
    if (parent->noted)
        return false;
    note_changed(parent, child);
    return true;
}

} // namespace interlock::children

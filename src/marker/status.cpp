// Whether an existing column can be the status of a marker: markers overwrite its values with 0 and
// 1.

#include "marker/marker.h"
#include "table/plan.h"
#include "table/relation_code.h"
#include "table/row.h"
#include "transition/transition.h"

namespace interlock::marker {

[[noreturn]] static void refuse(Relation rel, const char* column, const char* why) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("column \"%s\" of table \"%s\" cannot be a marker's status: %s", column,
                           RelationGetRelationName(rel), why),
                    errhint("A status is 0 (free) or 1 (held). Name another column as "
                            "status_column. A column that does not exist is added.")));
}

// --- The rows

static int64 count_rows(Relation rel, const char* condition) {
    run_command(psprintf("SELECT pg_catalog.count(*) FROM %s t WHERE %s", rows_of(rel), condition));
    bool is_null;
    return DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null));
}

static int64 count_other_values(Relation rel, const char* column) {
    return count_rows(rel,
                      psprintf("t.%s OPERATOR(pg_catalog.<>) 0 AND t.%s OPERATOR(pg_catalog.<>) 1",
                               quote_identifier(column), quote_identifier(column)));
}

static void check_values(Relation rel, const char* column) {
    int64 count = count_other_values(rel, column);
    if (count > 0)
        refuse(rel, column, psprintf("rows with another value than 0 and 1: " INT64_FORMAT, count));
}

static void check_holders(Relation rel, const char* const* columns) {
    StringInfoData condition;
    initStringInfo(&condition);
    appendStringInfo(&condition, "t.%s OPERATOR(pg_catalog.=) 1",
                     quote_identifier(columns[kStatus]));
    Oid relid = RelationGetRelid(rel);
    if (get_attnum(relid, columns[kHolder]) != InvalidAttrNumber)
        appendStringInfo(&condition,
                         " AND COALESCE(t.%s, ''::pg_catalog.text) OPERATOR(pg_catalog.=) ''",
                         quote_identifier(columns[kHolder]));
    if (get_attnum(relid, columns[kTime]) != InvalidAttrNumber)
        appendStringInfo(&condition, " AND t.%s IS NULL", quote_identifier(columns[kTime]));
    int64 count = count_rows(rel, condition.data);
    if (count > 0)
        refuse(rel, columns[kStatus],
               psprintf("rows with 1, no holder and no time: " INT64_FORMAT, count));
}

// --- The definition of the table

static void check_machines(Relation rel, const char* column) {
    for (const transition::StateMachine& machine : transition::machines_of(table_info(rel)))
        if (strcmp(NameStr(machine.name), column) == 0)
            refuse(rel, column, "it has transitions");
}

namespace {

// Values in conditions: Datum of int8.
struct Values {
    Datum* values;
    int count;
};

} // namespace

static bool is_integer(Oid type) { return type == INT2OID || type == INT4OID || type == INT8OID; }

static void add_value(Values* values, Oid type, Datum value) {
    values->values = static_cast<Datum*>(
        values->values == nullptr ? palloc(sizeof(Datum))
                                  : repalloc(values->values, sizeof(Datum) * (values->count + 1)));
    values->values[values->count++] = Int64GetDatum(integer_of(type, value));
}

static void add_elements(Values* values, Oid type, Datum array) {
    int16 length;
    bool by_value;
    char alignment;
    get_typlenbyvalalign(type, &length, &by_value, &alignment);
    Datum* elements;
    bool* nulls;
    int count;
    deconstruct_array(DatumGetArrayTypeP(array), type, length, by_value, alignment, &elements,
                      &nulls, &count);
    for (int i = 0; i < count; i++)
        if (!nulls[i])
            add_value(values, type, elements[i]);
}

static bool collect_values(Node* node, void* values) {
    if (node == nullptr)
        return false;
    if (IsA(node, Const)) {
        auto* constant = reinterpret_cast<Const*>(node);
        Oid element = get_element_type(constant->consttype);
        if (!constant->constisnull && is_integer(constant->consttype))
            add_value(static_cast<Values*>(values), constant->consttype, constant->constvalue);
        else if (!constant->constisnull && is_integer(element))
            add_elements(static_cast<Values*>(values), element, constant->constvalue);
    }
    return walk_expression(node, collect_values, values);
}

// column = value
static Node* equals(Form_pg_attribute column, int64 value) {
    Oid type = column->atttypid;
    Var* var = makeVar(1, column->attnum, type, -1, InvalidOid, 0);
    Datum datum = type == INT8OID ? Int64GetDatum(value) : Int32GetDatum(static_cast<int32>(value));
    Const* constant =
        makeConst(type, -1, InvalidOid, get_typlen(type), datum, false, get_typbyval(type));
    Oid equality = lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr;
    auto* clause = reinterpret_cast<OpExpr*>(
        make_opclause(equality, BOOLOID, false, reinterpret_cast<Expr*>(var),
                      reinterpret_cast<Expr*>(constant), InvalidOid, InvalidOid));
    set_opfuncid(clause);
    return reinterpret_cast<Node*>(clause);
}

// The conditions of CHECK constraints on this column alone.
static List* conditions_on(Relation rel, AttrNumber attnum) {
    List* result = NIL;
    const TupleConstr* constraints = RelationGetDescr(rel)->constr;
    for (int i = 0; constraints != nullptr && i < constraints->num_check; i++) {
        auto* check = static_cast<Node*>(stringToNode(constraints->check[i].ccbin));
        if (only_computes(check))
            check = eval_const_expressions(nullptr, check); // 2::bigint becomes a constant
        ListCell* cell;
        foreach (cell, make_ands_implicit(reinterpret_cast<Expr*>(check))) {
            Bitmapset* columns = nullptr;
            pull_varattnos(static_cast<Node*>(lfirst(cell)), 1, &columns);
            if (bms_num_members(columns) == 1 &&
                bms_singleton_member(columns) == attnum - FirstLowInvalidHeapAttributeNumber)
                result = lappend(result, lfirst(cell));
        }
    }
    return result;
}

// Whether a condition names the value, or a neighbouring value, and allows it. What conditions
// imply is derived from the operators of the server's btree families: no code of the owner runs.
static bool is_let_in(List* conditions, Form_pg_attribute column, int64 value) {
    List* given = list_make1(equals(column, value));
    bool let_in = false;
    ListCell* cell;
    foreach (cell, conditions) {
        List* condition = list_make1(lfirst(cell));
        if (predicate_refuted_by(condition, given, false))
            return false;
        let_in = let_in || predicate_implied_by(condition, given, false);
    }
    return let_in;
}

static bool fits_type(int64 value, Oid type) {
    int64 most = type == INT2OID ? PG_INT16_MAX : type == INT4OID ? PG_INT32_MAX : PG_INT64_MAX - 1;
    return value <= most && value >= -most;
}

static void check_constraints(Relation rel, Form_pg_attribute column) {
    List* conditions = conditions_on(rel, column->attnum);
    Values named = {};
    collect_values(reinterpret_cast<Node*>(conditions), &named);
    for (int i = 0; i < named.count; i++) {
        int64 name = DatumGetInt64(named.values[i]);
        if (!fits_type(name, column->atttypid))
            continue;
        for (int64 value = name - 1; value <= name + 1; value++)
            if (value != 0 && value != 1 && fits_type(value, column->atttypid) &&
                is_let_in(conditions, column, value))
                refuse(rel, NameStr(column->attname),
                       psprintf("a CHECK allows other values, as " INT64_FORMAT, value));
    }
}

void refuse_foreign_status(Oid relid, const char* const* columns) {
    const char* column = columns[kStatus];
    Relation rel = table_open(relid, AccessShareLock);
    AttrNumber attnum = get_attnum(relid, column);
    if (attnum != InvalidAttrNumber) {
        check_machines(rel, column);
        check_constraints(rel, TupleDescAttr(RelationGetDescr(rel), attnum - 1));
        check_values(rel, column);
        check_holders(rel, columns);
    }
    table_close(rel, AccessShareLock);
}

void refuse_moved_marker(Oid relid, const char* const* present, const char* const* columns) {
    int moved = 0;
    while (moved < kMarkerRoles &&
           (present[moved] == nullptr || strcmp(present[moved], columns[moved]) == 0))
        moved++;
    if (moved == kMarkerRoles || present[kStatus] == nullptr)
        return;
    StringInfoData held;
    initStringInfo(&held);
    appendStringInfo(&held, "t.%s OPERATOR(pg_catalog.=) 1", quote_identifier(present[kStatus]));
    if (present[kUntil] != nullptr)
        appendStringInfo(&held, " AND t.%s OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()",
                         quote_identifier(present[kUntil]));
    Relation rel = table_open(relid, AccessShareLock);
    int64 count = count_rows(rel, held.data);
    if (count > 0)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("the marker of table \"%s\" cannot move from column \"%s\" to \"%s\" "
                        "while rows are held: " INT64_FORMAT,
                        RelationGetRelationName(rel), present[moved], columns[moved], count),
                 errhint("Release them first, with unlock_row or force_unlock_row, or wait "
                         "until they have expired. A call that names no columns keeps those "
                         "of the marker.")));
    table_close(rel, AccessShareLock);
}

// What hand-made locks call their status.
constexpr const char* kUsualStatus = "status";

// A call that adds all columns of the marker, in addition to the existing ones.
static const char* call_with_own_columns(Relation rel, const char* const* columns) {
    constexpr const char* kOwn[kMarkerRoles][2] = {{"status_column", "marker_status"},
                                                   {"holder_column", "marker_by"},
                                                   {"time_column", "marker_time"},
                                                   {"until_column", "marker_until"},
                                                   {"reason_column", "marker_reason"}};
    StringInfoData call;
    initStringInfo(&call);
    appendStringInfo(&call, "SELECT interlock.enable_marker(%s",
                     quote_literal_cstr(typed_name(rel)));
    for (int role = 0; role < kMarkerRoles; role++)
        if (find_attribute(RelationGetDescr(rel), columns[role]) != InvalidAttrNumber)
            appendStringInfo(&call, ", %s => '%s'", kOwn[role][0], kOwn[role][1]);
    appendStringInfoChar(&call, ')');
    return call.data;
}

// How to adopt the lock: its status is the usual one if there is such a column.
static const char* call_with_lock(Relation rel, bool has_status) {
    return psprintf("SELECT interlock.enable_marker(%s, status_column => %s)",
                    quote_literal_cstr(typed_name(rel)),
                    has_status ? quote_literal_cstr(kUsualStatus) : "...");
}

static bool has_usual_status(Relation rel) {
    AttrNumber attnum = find_attribute(RelationGetDescr(rel), kUsualStatus);
    return attnum != InvalidAttrNumber &&
           fits_role(kStatus, TupleDescAttr(RelationGetDescr(rel), attnum - 1)->atttypid);
}

// The manual lock would still work, and a row would have two holders.
[[noreturn]] static void refuse_half(Relation rel, const char* const* columns,
                                     const char* adopted) {
    bool has_status = has_usual_status(rel);
    int64 others = has_status ? count_other_values(rel, kUsualStatus) : 0;
    const char* adopt = call_with_lock(rel, has_status);
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             has_status
                 ? errmsg("columns of table \"%s\" look like a lock whose status is column \"%s\"",
                          RelationGetRelationName(rel), kUsualStatus)
                 : errmsg("column \"%s\" of table \"%s\" looks like half of a lock: there is no "
                          "column \"%s\"",
                          adopted, RelationGetRelationName(rel), columns[kStatus]),
             others > 0 ? errdetail("Rows whose \"%s\" is neither 0 nor 1: " INT64_FORMAT ".",
                                    kUsualStatus, others)
                        : 0,
             errhint("If it is a lock, adopt its status too%s: %s. If it means something else, "
                     "give the marker columns of its own: %s.",
                     others > 0   ? ", after its other values have moved to another column"
                     : has_status ? ""
                                  : ", the column that has 1 in rows that are held",
                     adopt, call_with_own_columns(rel, columns))));
}

static void refuse_lost_holders(Relation rel, const char* const* columns) {
    const char* holder = columns[kHolder];
    int64 count = count_rows(rel, psprintf("t.%s OPERATOR(pg_catalog.<>) ''::pg_catalog.text",
                                           quote_identifier(holder)));
    if (count == 0)
        return;
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("column \"%s\" of table \"%s\" has holders, and there is no status column \"%s\": "
                "rows with a holder: " INT64_FORMAT,
                holder, RelationGetRelationName(rel), columns[kStatus], count),
         errhint("Name the column that has 1 in rows that are held as status_column. If there is "
                 "none, give the marker columns of its own: %s.",
                 call_with_own_columns(rel, columns))));
}

void refuse_unadopted_status(Oid relid, const char* const* columns, bool names_status) {
    Relation rel = table_open(relid, AccessShareLock);
    TupleDesc all = RelationGetDescr(rel);
    bool has_holder = find_attribute(all, columns[kHolder]) != InvalidAttrNumber;
    bool has_time = find_attribute(all, columns[kTime]) != InvalidAttrNumber;
    bool is_half =
        find_attribute(all, columns[kStatus]) == InvalidAttrNumber && (has_holder || has_time);
    // Columns that the caller has named are meant.
    bool is_unnamed = (has_holder && strcmp(columns[kHolder], kDefaultColumns[kHolder]) == 0) ||
                      (has_time && strcmp(columns[kTime], kDefaultColumns[kTime]) == 0);
    if (is_half && !names_status && (is_unnamed || has_usual_status(rel)))
        refuse_half(rel, columns, columns[has_holder ? kHolder : kTime]);
    if (is_half && has_holder)
        refuse_lost_holders(rel, columns);
    table_close(rel, AccessShareLock);
}

} // namespace interlock::marker

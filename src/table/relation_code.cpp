#include "table/relation_code.h"

#include "server/scope.h"
#include "table/facet.h"

namespace interlock::inline table {

// --- Our own BEFORE triggers
// -----------------------------------------------------------------------

static bool has_check(const TableInfo* info, RowCheck check) {
    for (int i = 0; i < info->row_check_count; i++)
        if (info->row_checks[i] == check)
            return true;
    return false;
}

// The checks of our BEFORE UPDATE triggers, each once: one check stands for all triggers of its
// function, which must then fire one after the other. Returns false when some trigger does more, or
// is not ours.
static bool load_row_checks(TableInfo* info, const TriggerDesc* triggers) {
    int count = triggers != nullptr ? triggers->numtriggers : 0;
    info->row_checks = static_cast<RowCheck*>(palloc(sizeof(RowCheck) * Max(count, 1)));
    for (int i = 0; i < count; i++) {
        const Trigger* trigger = &triggers->triggers[i];
        if (!TRIGGER_TYPE_MATCHES(trigger->tgtype, TRIGGER_TYPE_ROW, TRIGGER_TYPE_BEFORE,
                                  TRIGGER_TYPE_UPDATE))
            continue;
        const TableFacet* facet = facet_of_trigger(trigger);
        if (facet == nullptr || facet->check == nullptr || trigger->tgqual != nullptr ||
            trigger->tgnattr > 0)
            return false;
        int last = info->row_check_count - 1;
        if (last >= 0 && info->row_checks[last] == facet->check)
            continue;
        if (has_check(info, facet->check))
            return false;
        info->row_checks[info->row_check_count++] = facet->check;
    }
    return true;
}

// --- Expressions
// -----------------------------------------------------------------------------------

// An immutable function of the server neither waits nor depends on the current user.
static bool is_more_than_computing(Oid function, void*) {
    return !is_built_in(function) || func_volatile(function) != PROVOLATILE_IMMUTABLE;
}

static bool does_more_than_compute(Node* node, void* context) {
    if (node == nullptr)
        return false;
    if (IsA(node, CoerceToDomain) || IsA(node, SQLValueFunction) || IsA(node, NextValueExpr) ||
        is_json_expression(node) || check_functions_in_node(node, is_more_than_computing, context))
        return true;
    return walk_expression(node, does_more_than_compute, context);
}

static bool is_users_function(Oid function, void*) { return !is_built_in(function); }

static bool calls_users_code(Node* node, void* context) {
    if (node == nullptr)
        return false;
    if (IsA(node, CoerceToDomain) || is_json_expression(node) ||
        check_functions_in_node(node, is_users_function, context))
        return true;
    return walk_expression(node, calls_users_code, context);
}

static bool is_any(Oid, void*) { return true; }

// Planning evaluates such a call. Its result may depend on a setting, on catalogs without
// invalidation (bytea_output, text search), and on the privileges of the caller.
// The context is whether what was walked before it has a column.
static bool calls_with_constants(Node* node, void* context) {
    CHECK_FOR_INTERRUPTS(); // anybody can make a check of gigabytes
    if (node == nullptr)
        return false;
    bool has_column = IsA(node, Var);
    if (walk_expression(node, calls_with_constants, &has_column) ||
        (!has_column && check_functions_in_node(node, is_any, nullptr)))
        return true;
    if (has_column)
        *static_cast<bool*>(context) = true;
    return false;
}

static bool does_more_than_compute(const char* text) {
    return does_more_than_compute(static_cast<Node*>(stringToNode(text)), nullptr);
}

// --- Indexes and checks
// ----------------------------------------------------------------------------

// These call functions of their elements' types.
static bool is_composed(Oid type) {
    return type == ANYARRAYOID || type == RECORDOID || type == ANYRANGEOID ||
           type == ANYMULTIRANGEOID;
}

static bool calls_others(Relation index) {
    if (!is_built_in(index->rd_rel->relam) || index->rd_index->indisexclusion)
        return true;
    int columns = IndexRelationGetNumberOfKeyAttributes(index);
    for (int i = 0; i < columns; i++)
        if (is_composed(index->rd_opcintype[i]))
            return true;
    for (int i = 0; i < columns * index->rd_indam->amsupport; i++)
        if (!is_built_in(index->rd_support[i]))
            return true;
    return false;
}

static bool has_code(HeapTuple index, AttrNumber attribute) {
    bool is_null;
    Datum code = SysCacheGetAttr(INDEXRELID, index, attribute, &is_null);
    return !is_null && does_more_than_compute(TextDatumGetCString(code));
}

// Returns only_computes.
static bool load_index(TableInfo* info, Oid index_oid) {
    Relation index = index_open(index_oid, AccessShareLock);
    info->index_count++;
    info->unique_count += index->rd_index->indisunique;
    bool computes = only_computes(index);
    index_close(index, AccessShareLock);
    return computes;
}

static bool load_indexes(TableInfo* info, Relation rel) {
    bool compute = true;
    ListCell* cell;
    foreach (cell, RelationGetIndexList(rel))
        compute = load_index(info, lfirst_oid(cell)) && compute;
    return compute;
}

// Returns whether it only computes.
static bool load_check(TableCheck* check, const char* text) {
    auto* expression = static_cast<Expr*>(stringToNode(text));
    auto* node = reinterpret_cast<Node*>(expression);
    bool computes = !does_more_than_compute(node, nullptr);
    bool has_column = false;
    check->planned = computes && !calls_with_constants(node, &has_column);
    check->expression = check->planned ? expression_planner(expression) : expression;
    return computes;
}

// Their text is parsed here once: the executor would parse it for each statement, which costs more
// than writing a row. The memory of parsing and planning is freed.
static bool load_checks(TableInfo* info) {
    const TupleConstr* constraints = info->columns->constr;
    if (constraints == nullptr || constraints->num_check == 0)
        return true;
    bool compute = true;
    info->checks = static_cast<TableCheck*>(palloc0(sizeof(TableCheck) * constraints->num_check));
    MemoryContext scratch =
        AllocSetContextCreate(CurrentMemoryContext, "pg_interlock checks", ALLOCSET_DEFAULT_SIZES);
    for (int i = 0; i < constraints->num_check; i++) {
        const ConstrCheck& constraint = constraints->check[i];
        TableCheck* check = &info->checks[i];
        if (!is_enforced(constraint))
            continue;
        compute =
            in_context(scratch, [&] { return load_check(check, constraint.ccbin); }) && compute;
        check->expression = static_cast<Expr*>(copyObjectImpl(check->expression));
    }
    MemoryContextDelete(scratch);
    return compute;
}

void load_code(TableInfo* info, Relation rel, const TriggerDesc* triggers) {
    info->runs_code = inserting_runs_code(rel);
    bool indexes_compute = load_indexes(info, rel);
    bool checks_compute = load_checks(info);
    const TupleConstr* constraints = info->columns->constr;
    bool generates = constraints != nullptr && constraints->has_generated_stored;
    info->only_row_checks =
        indexes_compute && checks_compute && !generates && load_row_checks(info, triggers);
}

bool only_computes(Relation index) {
    HeapTuple tuple = index->rd_indextuple;
    return !calls_others(index) && !has_code(tuple, Anum_pg_index_indexprs) &&
           !has_code(tuple, Anum_pg_index_indpred);
}

bool only_computes(Node* expression) { return !does_more_than_compute(expression, nullptr); }

bool calls_users_code(Node* expression) { return calls_users_code(expression, nullptr); }

bool reading_runs_code(Oid type) {
    while (OidIsValid(type)) {
        switch (get_typtype(type)) {
        case TYPTYPE_BASE:
            type = get_element_type(type);
            break;
        case TYPTYPE_ENUM:
            return false;
        case TYPTYPE_RANGE:
            type = get_range_subtype(type);
            break;
        case TYPTYPE_MULTIRANGE:
            type = get_multirange_range(type);
            break;
        default:
            return true;
        }
    }
    return false;
}

bool inserting_runs_code(Relation rel) {
    const TupleConstr* constraints = RelationGetDescr(rel)->constr;
    return rel->trigdesc != nullptr || rel->rd_rules != nullptr ||
           (constraints != nullptr && (constraints->num_check > 0 || constraints->num_defval > 0));
}

} // namespace interlock::inline table

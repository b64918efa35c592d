#include "statement/compared.h"

#include "table/own_table.h"

namespace interlock::inline statement {

namespace {

// A condition at some depth of subqueries below the query of the target.
struct Place {
    Target* target;
    int depth;
};

} // namespace

static Compared compared_at(const Place& place, Node* condition);

// --- The two sides of a comparison ---------------------------------------------------------------

namespace {

struct Side {
    Bitmapset* columns; // of the target
    bool others;        // columns of other tables, of those in IN (SELECT ...)
    bool subqueries;
};

struct SideSearch {
    Place place;
    int inside; // subqueries of the side itself
    Side side;
};

} // namespace

static void note_column(SideSearch* search, const Var* column) {
    int level = static_cast<int>(column->varlevelsup) - search->inside;
    if (level < 0) // of a subquery in the side
        return;
    if (level == search->place.depth &&
        column->varno == search->place.target->query->resultRelation)
        search->side.columns = bms_add_member(
            search->side.columns, column->varattno - FirstLowInvalidHeapAttributeNumber);
    else
        search->side.others = true;
}

static bool search_side(Node* node, void* context) {
    if (node == nullptr)
        return false;
    auto* search = static_cast<SideSearch*>(context);
    if (IsA(node, Var)) {
        note_column(search, reinterpret_cast<Var*>(node));
        return false;
    }
    if (IsA(node, SubLink))
        search->side.subqueries = true;
    if (IsA(node, Param) && reinterpret_cast<Param*>(node)->paramkind == PARAM_SUBLINK)
        search->side.others = true;
    if (!IsA(node, Query))
        return walk_expression(node, search_side, context);
    search->inside++;
    walk_query(reinterpret_cast<Query*>(node), search_side, context, 0);
    search->inside--;
    return false;
}

static Side side_of(const Place& place, Node* expression) {
    constexpr int kXmin = MinTransactionIdAttributeNumber - FirstLowInvalidHeapAttributeNumber;
    SideSearch search = {place, 0, {}};
    search_side(expression, &search);
    if (bms_is_member(kXmin, search.side.columns))
        search.side.columns = bms_add_member(search.side.columns, kWholeRow);
    return search.side;
}

static bool reads_target(const Place& place, const Side& side) {
    return (side.others || side.subqueries) && reads_elsewhere(place.target);
}

static Node* below_casts(Node* expression) {
    while (IsA(expression, RelabelType))
        expression = reinterpret_cast<Node*>(reinterpret_cast<RelabelType*>(expression)->arg);
    return expression;
}

static bool is_plain_column(Node* expression) {
    expression = below_casts(expression);
    return IsA(expression, Var) && reinterpret_cast<Var*>(expression)->varattno > 0;
}

// Values that differ can be equal in a type that the column is cast to: char(n) ignores blanks at
// the end, and citext the case.
static bool compares_bytes(Node* column, Oid collation) {
    Oid type = exprType(column);
    return (type == TEXTOID || type == getBaseType(exprType(below_casts(column)))) &&
           (!OidIsValid(collation) || get_collation_isdeterministic(collation));
}

// --- Operators -----------------------------------------------------------------------------------

namespace {

// How the left side of an operator stands to its right side where it is true.
enum class Order : uint8 { kNone, kEqual, kAtMost, kAtLeast };

} // namespace

static Order order_in_index(Form_pg_amop entry) {
    if (entry->amopmethod == HASH_AM_OID)
        return entry->amopstrategy == HTEqualStrategyNumber ? Order::kEqual : Order::kNone;
    if (entry->amopmethod != BTREE_AM_OID)
        return Order::kNone;
    switch (entry->amopstrategy) {
    case BTEqualStrategyNumber:
        return Order::kEqual;
    case BTLessStrategyNumber:
    case BTLessEqualStrategyNumber:
        return Order::kAtMost;
    default:
        return Order::kAtLeast;
    }
}

// xmin = 734 is in no family of operators.
static Order order_of(Oid comparison) {
    if (get_opcode(comparison) == F_XIDEQINT4)
        return Order::kEqual;
    Order order = Order::kNone;
    CatCList* entries = SearchSysCacheList1(AMOPOPID, ObjectIdGetDatum(comparison));
    for (int i = 0; i < entries->n_members && order == Order::kNone; i++)
        order =
            order_in_index(reinterpret_cast<Form_pg_amop>(GETSTRUCT(&entries->members[i]->tuple)));
    ReleaseSysCacheList(entries);
    return order;
}

static Compared compared_sides(const Place& place, Node* left, Node* right, Order order,
                               Oid collation) {
    Side left_side = side_of(place, left);
    Side right_side = side_of(place, right);
    bool is_left = left_side.columns != nullptr;
    if (is_left == (right_side.columns != nullptr) || reads_target(place, left_side) ||
        reads_target(place, right_side))
        return {};
    if (order != Order::kEqual && order != (is_left ? Order::kAtMost : Order::kAtLeast))
        return {};
    Compared compared = {is_left ? left_side.columns : right_side.columns, nullptr};
    const Side& value = is_left ? right_side : left_side;
    Node* column = is_left ? left : right;
    if (order == Order::kEqual && !value.others && is_plain_column(column) &&
        compares_bytes(column, collation))
        compared.equal = compared.at_all;
    return compared;
}

static Compared compared_by_operator(const Place& place, const OpExpr* comparison) {
    if (list_length(comparison->args) != 2)
        return {};
    Order order = order_of(comparison->opno);
    if (order == Order::kNone)
        return {};
    return compared_sides(place, static_cast<Node*>(linitial(comparison->args)),
                          static_cast<Node*>(lsecond(comparison->args)), order,
                          comparison->inputcollid);
}

// A null is compared, too, so the row does not tell the value.
static Compared compared_as_distinct(const Place& place, const DistinctExpr* comparison) {
    Compared compared = compared_by_operator(place, comparison);
    compared.equal = nullptr;
    return compared;
}

static Node* array_below_casts(Node* array) {
    for (;;) {
        if (IsA(array, RelabelType))
            array = reinterpret_cast<Node*>(reinterpret_cast<RelabelType*>(array)->arg);
        else if (IsA(array, ArrayCoerceExpr))
            array = reinterpret_cast<Node*>(reinterpret_cast<ArrayCoerceExpr*>(array)->arg);
        else
            return array;
    }
}

static bool has_one_element(Node* array) {
    array = array_below_casts(array);
    if (IsA(array, ArrayExpr)) {
        auto* elements = reinterpret_cast<ArrayExpr*>(array);
        return !elements->multidims && list_length(elements->elements) == 1;
    }
    if (!IsA(array, Const) || reinterpret_cast<Const*>(array)->constisnull)
        return false;
    ArrayType* elements = DatumGetArrayTypeP(reinterpret_cast<Const*>(array)->constvalue);
    return ArrayGetNItems(ARR_NDIM(elements), ARR_DIMS(elements)) == 1;
}

static Compared compared_with_array(const Place& place, const ScalarArrayOpExpr* comparison) {
    Node* array = static_cast<Node*>(lsecond(comparison->args));
    if (!comparison->useOr || !has_one_element(array))
        return {};
    return compared_sides(place, static_cast<Node*>(linitial(comparison->args)), array,
                          order_of(comparison->opno), comparison->inputcollid);
}

// --- Functions -----------------------------------------------------------------------------------

static bool is_any_version(Oid function) {
    char* name = get_func_name(function);
    return name != nullptr && strcmp(name, "any_version") == 0 &&
           get_func_namespace(function) == own_schema();
}

// A boolean function with a column of the target as one argument and something else as another. A
// whole row does not count: a function of it and of a user may check access.
static Compared compared_by_function(const Place& place, const FuncExpr* call) {
    if (call->funcresulttype != BOOLOID)
        return {};
    bool escapes = is_any_version(call->funcid);
    bool has_value = escapes;
    Bitmapset* columns = nullptr;
    ListCell* cell;
    foreach (cell, call->args) {
        Side side = side_of(place, static_cast<Node*>(lfirst(cell)));
        if (!escapes && reads_target(place, side))
            return {};
        has_value = has_value || side.columns == nullptr;
        columns = bms_add_members(columns, side.columns);
    }
    columns = bms_del_member(columns, kWholeRow);
    return {has_value ? columns : nullptr, nullptr};
}

// --- Subqueries ----------------------------------------------------------------------------------

// An aggregate returns a row even where nothing meets the condition.
static bool returns_only_what_it_finds(const Query* query) {
    return query->commandType == CMD_SELECT && !query->hasAggs && query->groupingSets == NIL &&
           query->havingQual == nullptr && query->setOperations == nullptr;
}

static Compared compared_by_subquery(const Place& place, const SubLink* link) {
    if (link->subLinkType != EXISTS_SUBLINK && link->subLinkType != ANY_SUBLINK)
        return {};
    Compared compared = compared_at(place, link->testexpr);
    auto* query = castNode(Query, link->subselect);
    if (!returns_only_what_it_finds(query))
        return compared;
    Place below = {place.target, place.depth + 1};
    return either_compares(compared, compared_at(below, reinterpret_cast<Node*>(query->jointree)));
}

// --- Conditions ----------------------------------------------------------------------------------

static Compared compared_by_any(const Place& place, const List* conditions) {
    Compared compared = {};
    const ListCell* cell;
    foreach (cell, conditions)
        compared = either_compares(compared, compared_at(place, static_cast<Node*>(lfirst(cell))));
    return compared;
}

static Compared compared_by_all(const Place& place, const List* conditions) {
    Compared compared = compared_at(place, static_cast<Node*>(linitial(conditions)));
    const ListCell* cell;
    for_each_from(cell, conditions, 1) {
        if (bms_is_empty(compared.at_all))
            break;
        compared = both_compare(compared, compared_at(place, static_cast<Node*>(lfirst(cell))));
    }
    return compared;
}

static Compared compared_by_bool(const Place& place, const BoolExpr* condition) {
    if (condition->boolop == AND_EXPR)
        return compared_by_any(place, condition->args);
    if (condition->boolop == OR_EXPR)
        return compared_by_all(place, condition->args);
    Node* negated = static_cast<Node*>(linitial(condition->args));
    return IsA(negated, DistinctExpr)
               ? compared_as_distinct(place, reinterpret_cast<DistinctExpr*>(negated))
               : Compared{};
}

static Compared compared_with_null(const Place& place, const NullTest* test) {
    auto* expression = reinterpret_cast<Node*>(test->arg);
    if (test->nulltesttype != IS_NULL || test->argisrow || !is_plain_column(expression))
        return {};
    return {side_of(place, expression).columns, nullptr};
}

static Compared compared_by_join(const Place& place, const JoinExpr* join) {
    if (join->jointype != JOIN_INNER)
        return {};
    return either_compares(
        compared_at(place, join->quals),
        either_compares(compared_at(place, join->larg), compared_at(place, join->rarg)));
}

static Compared compared_at(const Place& place, Node* condition) {
    if (condition == nullptr)
        return {};
    check_stack_depth();
    switch (nodeTag(condition)) {
    case T_List:
        return compared_by_any(place, reinterpret_cast<List*>(condition));
    case T_BoolExpr:
        return compared_by_bool(place, reinterpret_cast<BoolExpr*>(condition));
    case T_OpExpr:
        return compared_by_operator(place, reinterpret_cast<OpExpr*>(condition));
    case T_ScalarArrayOpExpr:
        return compared_with_array(place, reinterpret_cast<ScalarArrayOpExpr*>(condition));
    case T_NullTest:
        return compared_with_null(place, reinterpret_cast<NullTest*>(condition));
    case T_FuncExpr:
        return compared_by_function(place, reinterpret_cast<FuncExpr*>(condition));
    case T_SubLink:
        return compared_by_subquery(place, reinterpret_cast<SubLink*>(condition));
    case T_FromExpr: {
        auto* from = reinterpret_cast<FromExpr*>(condition);
        return either_compares(compared_at(place, from->quals),
                               compared_by_any(place, from->fromlist));
    }
    case T_JoinExpr:
        return compared_by_join(place, reinterpret_cast<JoinExpr*>(condition));
    case T_CurrentOfExpr:
        return {bms_make_singleton(kCurrentOf), nullptr};
    default:
        return {};
    }
}

Compared compared_by(Target* target, Node* condition) {
    return compared_at({target, 0}, condition);
}

Compared both_compare(const Compared& left, const Compared& right) {
    Bitmapset* at_all = bms_intersect(left.at_all, right.at_all);
    if (bms_is_member(kWholeRow, left.at_all))
        at_all = bms_add_members(at_all, right.at_all);
    if (bms_is_member(kWholeRow, right.at_all))
        at_all = bms_add_members(at_all, left.at_all);
    return {at_all, bms_intersect(left.equal, right.equal)};
}

Compared either_compares(const Compared& left, const Compared& right) {
    return {bms_union(left.at_all, right.at_all), bms_union(left.equal, right.equal)};
}

} // namespace interlock::inline statement

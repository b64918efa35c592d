#include "server/lone_call.h"

namespace interlock::inline server {

namespace {

struct LoneCall {
    const char* message; // null: there is none
    const char* hint;
    bool in_from;
    TimestampTz statement; // the start of the statement
};

} // namespace

static LoneCall lone_call = {};

// Each message of a pipeline that prepares or runs a statement moves the start of the statement, so
// that at the end of a longer pipeline it is another one.
static void warn_at_commit(XactEvent event, void*) {
    LoneCall call = lone_call;
    lone_call = {};
    if (event == XACT_EVENT_PRE_COMMIT && call.message != nullptr &&
        GetCurrentStatementStartTimestamp() == call.statement)
        ereport(WARNING,
                (errcode(ERRCODE_NO_ACTIVE_SQL_TRANSACTION), errmsg_internal("%s", call.message),
                 errhint("%s%s", call.hint,
                         call.in_from ? " Behind a router, call it in a function on the "
                                        "shard, together with what it is to protect."
                                      : "")));
}

static void warn_later(const LoneCall& call) {
    static bool registered = false;
    if (!registered)
        RegisterXactCallback(warn_at_commit, nullptr);
    registered = true;
    lone_call = call;
}

// The statement of the client, if it is one SELECT without subqueries outside of a block.
static const Plan* plan_of_lone_statement() {
    if (IsTransactionBlock() || (MyXactFlags & XACT_FLAGS_PIPELINING) != 0)
        return nullptr;
    Portal portal = ActivePortal;
    if (portal == nullptr || portal->name[0] != '\0' || portal->strategy != PORTAL_ONE_SELECT)
        return nullptr;
    const auto* statement = linitial_node(PlannedStmt, portal->stmts);
    return statement->subplans == NIL ? statement->planTree : nullptr;
}

static bool is_constant(const List* expressions) {
    return !contain_mutable_functions(
        const_cast<Node*>(reinterpret_cast<const Node*>(expressions)));
}

// A call that a function makes has an expression of that function, and not of the plan.
static bool is_that_call(const void* expression, const Node* call) {
    return call == expression && IsA(call, FuncExpr) &&
           is_constant(reinterpret_cast<const FuncExpr*>(call)->args);
}

static bool is_only_target(const Plan* plan, const Node* call) {
    if (!IsA(plan, Result) || outerPlan(plan) != nullptr || list_length(plan->targetlist) != 1)
        return false;
    return reinterpret_cast<const Result*>(plan)->resconstantqual == nullptr &&
           is_that_call(linitial_node(TargetEntry, plan->targetlist)->expr, call);
}

static bool is_only_source(const Plan* plan, const Node* call) {
    if (!IsA(plan, FunctionScan) || plan->qual != NIL || !is_constant(plan->targetlist))
        return false;
    const List* functions = reinterpret_cast<const FunctionScan*>(plan)->functions;
    return list_length(functions) == 1 &&
           is_that_call(linitial_node(RangeTblFunction, functions)->funcexpr, call);
}

void warn_if_routed(FunctionCallInfo fcinfo, const char* message, const char* hint) {
    const Node* call = fcinfo->flinfo->fn_expr;
    const Plan* plan = plan_of_lone_statement();
    if (plan != nullptr && call != nullptr && is_only_source(plan, call))
        warn_later({message, hint, true, GetCurrentStatementStartTimestamp()});
}

void warn_if_alone(FunctionCallInfo fcinfo, const char* message, const char* hint) {
    const Node* call = fcinfo->flinfo->fn_expr;
    const Plan* plan = plan_of_lone_statement();
    if (plan != nullptr && call != nullptr && is_only_target(plan, call))
        warn_later({message, hint, false, GetCurrentStatementStartTimestamp()});
    else
        warn_if_routed(fcinfo, message, hint);
}

} // namespace interlock::inline server

#include "server/lone_call.h"

namespace interlock::inline server {

namespace {

struct LoneCall {
    const char* message; // null: there is none
    const char* hint;
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
        ereport(WARNING, (errcode(ERRCODE_NO_ACTIVE_SQL_TRANSACTION),
                          errmsg_internal("%s", call.message), errhint("%s", call.hint)));
}

// The statement of the client, if it is one SELECT without FROM and without subqueries.
static const Result* plan_without_tables() {
    Portal portal = ActivePortal;
    if (portal == nullptr || portal->name[0] != '\0' || portal->strategy != PORTAL_ONE_SELECT)
        return nullptr;
    const auto* statement = linitial_node(PlannedStmt, portal->stmts);
    if (statement->subplans != NIL || !IsA(statement->planTree, Result))
        return nullptr;
    const auto* result = reinterpret_cast<const Result*>(statement->planTree);
    return outerPlan(result) == nullptr && result->resconstantqual == nullptr ? result : nullptr;
}

// A call that a function makes has an expression of that function, and not of the plan.
static bool is_whole_statement(const Node* call) {
    const Result* plan = plan_without_tables();
    if (plan == nullptr || list_length(plan->plan.targetlist) != 1)
        return false;
    const Expr* target = linitial_node(TargetEntry, plan->plan.targetlist)->expr;
    return call == reinterpret_cast<const Node*>(target) && IsA(call, FuncExpr) &&
           !contain_mutable_functions(
               reinterpret_cast<Node*>(reinterpret_cast<const FuncExpr*>(call)->args));
}

void warn_if_alone(FunctionCallInfo fcinfo, const char* message, const char* hint) {
    if (IsTransactionBlock() || (MyXactFlags & XACT_FLAGS_PIPELINING) != 0 ||
        fcinfo->flinfo->fn_expr == nullptr || !is_whole_statement(fcinfo->flinfo->fn_expr))
        return;
    static bool registered = false;
    if (!registered)
        RegisterXactCallback(warn_at_commit, nullptr);
    registered = true;
    lone_call = {message, hint, GetCurrentStatementStartTimestamp()};
}

} // namespace interlock::inline server

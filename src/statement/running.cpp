#include "statement/running.h"

#include "server/scope.h"
#include "statement/cursor.h"
#include "statement/mark.h"
#include "table/column.h"
#include "table/plan.h"

namespace interlock::inline statement {

Skipped* skipped_by_insert = nullptr;

static planner_hook_type previous_planner = nullptr;
static ExecutorRun_hook_type previous_run = nullptr;
static ExecutorFinish_hook_type previous_finish = nullptr;

static bool loaded_early = false;

namespace {

struct RunningStatement {
    QueryDesc* query; // null for a write without a statement
    int security;     // of the user when it began: SECURITY_*
    bool is_own;      // of this library
    Oid warned;
    Oid updated_relid; // the last row that it was asked about
    ItemPointerData updated;
    RunningStatement* outer;
    // The last answer: a statement asks for many rows of one table.
    struct {
        Oid relid;
        AttrNumber column;
        int action;
        int relations; // how many were open
        Comparison comparison;
        bool by_cursor;
    } last;
};

} // namespace

static RunningStatement* innermost = nullptr;

// --- Planning ------------------------------------------------------------------------------------

static PlannedStmt* call_planner(INTERLOCK_PLANNER_ARGUMENTS) {
    return previous_planner != nullptr ? previous_planner(INTERLOCK_PLANNER_PASSED)
                                       : standard_planner(INTERLOCK_PLANNER_PASSED);
}

static PlannedStmt* plan_statement(INTERLOCK_PLANNER_ARGUMENTS) {
    if (query->commandType == CMD_SELECT && !query->hasModifyingCTE)
        return call_planner(INTERLOCK_PLANNER_PASSED);
    List* description = describe_targets(query, (options & kOwnStatement) != 0);
    PlannedStmt* plan = call_planner(INTERLOCK_PLANNER_PASSED);
    if (description != NIL)
        mark_plan(plan, description);
    return plan;
}

// --- Running -------------------------------------------------------------------------------------

static int present_security() {
    Oid user;
    int security;
    GetUserIdAndSecContext(&user, &security);
    return security;
}

template <typename Body>
static void run_as_innermost(QueryDesc* query, Body&& body) {
    RunningStatement here = {};
    here.query = query;
    here.security = present_security();
    here.is_own = query == nullptr || is_own_plan(query->plannedstmt);
    here.outer = innermost;
    with_current(&innermost, &here, body);
}

template <typename Body>
static void run_statement(QueryDesc* query, Body&& body) {
    const PlannedStmt* plan = query->plannedstmt;
    if (plan->commandType == CMD_SELECT && !plan->hasModifyingCTE)
        body();
    else
        run_as_innermost(query, body);
}

static bool counts_skipped(const QueryDesc* query) {
    return skipped_by_insert != nullptr && query->operation == CMD_INSERT &&
           query->planstate != nullptr && is_own_plan(query->plannedstmt);
}

// Statements of triggers in between may have counted theirs; this one ends last.
template <typename Body>
static void count_skipped(QueryDesc* query, Body&& body) {
    if (!counts_skipped(query)) {
        body();
        return;
    }
    if (query->planstate->instrument == nullptr)
        in_context(query->estate->es_query_cxt, [&] {
            count_rows_of(query->planstate);
            return 0;
        });
    body();
    *skipped_by_insert = {true, static_cast<uint64>(query->planstate->instrument->ntuples2)};
}

static void run_executor(INTERLOCK_EXECUTOR_RUN_ARGUMENTS) {
    auto run = [&] {
        if (previous_run != nullptr)
            previous_run(INTERLOCK_EXECUTOR_RUN_PASSED);
        else
            standard_ExecutorRun(INTERLOCK_EXECUTOR_RUN_PASSED);
    };
    run_statement(query, [&] { count_skipped(query, run); });
}

// AFTER triggers fire here, and parts of WITH that were not read to the end run.
static void finish_executor(QueryDesc* query) {
    run_statement(query, [&] {
        if (previous_finish != nullptr)
            previous_finish(query);
        else
            standard_ExecutorFinish(query);
    });
}

// --- Asking --------------------------------------------------------------------------------------

// The server runs the action so. This library writes its own tables so, too, and sweeps with both
// the second and SECURITY_RESTRICTED_OPERATION: there a SECURITY DEFINER function is taken for one.
static bool is_of_foreign_key(int security) {
    return (security & SECURITY_LOCAL_USERID_CHANGE) != 0 && (security & SECURITY_NOFORCE_RLS) != 0;
}

static Relation target_of(ResultRelInfo* result) {
    while (result->ri_RootResultRelInfo != nullptr)
        result = result->ri_RootResultRelInfo;
    return result->ri_RelationDesc;
}

static AttrNumber column_in(Relation target, Relation rel, AttrNumber column) {
    if (target == rel || RelationGetRelid(target) == RelationGetRelid(rel))
        return column;
    const char* name = NameStr(TupleDescAttr(RelationGetDescr(rel), column - 1)->attname);
    return find_attribute(RelationGetDescr(target), name);
}

// A table can be open several times: as the table of the statement, as its partition, and again in
// WITH.
template <typename Visit>
static void each_target_of_rows(const EState* estate, Oid relid, Visit&& visit) {
    for (List* list :
         {estate->es_opened_result_relations, estate->es_tuple_routing_result_relations}) {
        ListCell* cell;
        foreach (cell, list) {
            auto* result = static_cast<ResultRelInfo*>(lfirst(cell));
            if (RelationGetRelid(result->ri_RelationDesc) == relid)
                visit(target_of(result));
        }
    }
}

static Comparison comparison_in(const MarkedColumn& marked) {
    if (marked.is_own)
        return Comparison::kOwn;
    if (!marked.is_marked)
        return Comparison::kNotPlanned;
    if (marked.equal)
        return Comparison::kEqual;
    return marked.at_all ? Comparison::kAtAll : Comparison::kNone;
}

static int open_relations(const EState* estate) {
    return list_length(estate->es_opened_result_relations) +
           list_length(estate->es_tuple_routing_result_relations);
}

static void find_comparison(RunningStatement* statement, Relation rel, int action,
                            AttrNumber column) {
    const EState* estate = statement->query->estate;
    Comparison least = Comparison::kEqual;
    bool is_found = false;
    bool by_cursor = false;
    each_target_of_rows(estate, RelationGetRelid(rel), [&](Relation target) {
        MarkedColumn marked = marked_column(statement->query->plannedstmt, RelationGetRelid(target),
                                            action, column_in(target, rel, column));
        least = Min(least, comparison_in(marked));
        is_found = true;
        by_cursor = by_cursor || marked.by_cursor;
    });
    statement->last = {RelationGetRelid(rel),
                       column,
                       action,
                       open_relations(estate),
                       is_found ? least : Comparison::kNotPlanned,
                       by_cursor};
}

static bool is_last(const RunningStatement* statement, Relation rel, int action,
                    AttrNumber column) {
    return statement->last.relid == RelationGetRelid(rel) && statement->last.action == action &&
           statement->last.column == column &&
           statement->last.relations == open_relations(statement->query->estate);
}

void install_statement_hooks() {
    loaded_early = process_shared_preload_libraries_in_progress || IsInitProcessingMode();
    previous_planner = planner_hook;
    planner_hook = plan_statement;
    previous_run = ExecutorRun_hook;
    ExecutorRun_hook = run_executor;
    previous_finish = ExecutorFinish_hook;
    ExecutorFinish_hook = finish_executor;
}

bool knows_all_statements() { return loaded_early; }

void require_all_statements(const char* what) {
    if (loaded_early)
        return;
    const char* others = session_preload_libraries_string;
    const char* separator = others != nullptr && others[0] != '\0' ? ", " : "";
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("%s: pg_interlock was loaded after the session had begun", what),
             errdetail("Statements that were planned earlier cannot be checked."),
             errhint("Add pg_interlock to shared_preload_libraries and restart the server, or run "
                     "ALTER DATABASE %s SET session_preload_libraries = %s; and connect again.",
                     quote_identifier(get_database_name(MyDatabaseId)),
                     quote_literal_cstr(psprintf("%s%spg_interlock",
                                                 others != nullptr ? others : "", separator)))));
}

Comparison comparison_of(const TriggerData* trigger, AttrNumber column) {
    RunningStatement* statement = innermost;
    if (statement == nullptr)
        return Comparison::kNoStatement;
    if (statement->query == nullptr)
        return Comparison::kOwn;
    Relation rel = trigger->tg_relation;
    int action = TRIGGER_FIRED_BY_DELETE(trigger->tg_event) ? kDeletes : kUpdates;
    if (action == kUpdates) {
        statement->updated_relid = RelationGetRelid(rel);
        statement->updated = trigger->tg_trigtuple->t_self;
    }
    if (!is_last(statement, rel, action, column))
        find_comparison(statement, rel, action, column);
    if (statement->last.comparison == Comparison::kNone && statement->last.by_cursor &&
        is_as_fetched(statement->query, RelationGetRelid(rel), trigger->tg_trigtuple->t_self))
        return Comparison::kAtAll;
    return statement->last.comparison;
}

bool applies_subscription() {
    return innermost == nullptr && IsLogicalWorker() && trigger_depth() == 1;
}

bool is_fired_by_function() { return innermost != nullptr && innermost->is_own; }

bool is_moved(const TriggerData* trigger) {
    return innermost != nullptr &&
           innermost->updated_relid == RelationGetRelid(trigger->tg_relation) &&
           ItemPointerEquals(&innermost->updated, &trigger->tg_trigtuple->t_self);
}

bool is_foreign_key_action() {
    return innermost != nullptr && is_of_foreign_key(innermost->security) &&
           (innermost->outer == nullptr || !is_of_foreign_key(innermost->outer->security));
}

CommandId running_command() {
    return innermost != nullptr && innermost->query != nullptr
               ? innermost->query->estate->es_output_cid
               : GetCurrentCommandId(false);
}

bool is_first_of_statement(Oid table) {
    if (innermost == nullptr || innermost->warned == table)
        return innermost == nullptr;
    innermost->warned = table;
    return true;
}

void run_as_own_write(void (*body)(void* closure), void* closure) {
    run_as_innermost(nullptr, [&] { body(closure); });
}

} // namespace interlock::inline statement

// The scopes: events in the order in which they happened, each with its subtransaction. A rollback
// removes the events of its subtransaction.

#include "history/suppression.h"

#include "history/history.h"
#include "server/arguments.h"
#include "server/lone_call.h"
#include "server/transaction_end.h"
#include "server/transaction_list.h"
#include "table/relation.h"

namespace interlock::history {

constexpr Oid kAllTables = InvalidOid;

namespace {

struct ScopeEvent {
    Oid table;
    bool opens; // else it closes the innermost open scope of the table
    char* reason;
};

} // namespace

static TransactionList<ScopeEvent> events = {};

static Oid scope_argument(const Arguments& arguments);
static void open_scope(Oid table, const char* reason);
static bool close_scope(Oid table);
static int depth_of(Oid table);

extern "C" {
PG_FUNCTION_INFO_V1(suppress_history);
PG_FUNCTION_INFO_V1(restore_history);

// suppress_history(rel, reason)
Datum suppress_history(PG_FUNCTION_ARGS) {
    PreventCommandIfParallelMode("interlock.suppress_history()"); // a worker's ends with it
    Arguments arguments(fcinfo);
    Oid table = scope_argument(arguments);
    open_scope(table, arguments.string_or_null(1));
    warn_if_alone(fcinfo, "the history is already recorded again",
                  "Call the function after BEGIN, in the transaction that writes.");
    PG_RETURN_INT32(depth_of(table));
}

// restore_history(rel)
Datum restore_history(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Oid table = scope_argument(arguments);
    if (close_scope(table))
        PG_RETURN_INT32(depth_of(table));
    const char* hint =
        "Each restore_history ends one suppress_history with the same table in the "
        "same transaction.";
    if (table == kAllTables)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("history of all tables is not suppressed"), errhint("%s", hint)));
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("history of table \"%s\" is not suppressed", get_rel_name(table)),
                    errhint("%s", hint)));
}
}

// A partition's history is its parent's.
static Oid scope_argument(const Arguments& arguments) {
    if (arguments.is_null(0))
        return kAllTables;
    Relation rel = open_table(arguments.relation(0), AccessShareLock);
    Oid root = require_history(rel, table_info(rel))->root;
    close_table(rel);
    return root;
}

// The innermost open scope of exactly this table, or -1.
static int find_open(Oid table) {
    int closed = 0;
    for (int i = events.count - 1; i >= 0; i--) {
        if (events[i].table != table)
            continue;
        if (!events[i].opens)
            closed++;
        else if (closed-- == 0)
            return i;
    }
    return -1;
}

static int depth_of(Oid table) {
    int depth = 0;
    for (int i = 0; i < events.count; i++)
        if (events[i].table == table)
            depth += events[i].opens ? 1 : -1;
    return depth;
}

// A scope that was opened and closed in one subtransaction is removed, so that loops do not use up
// memory.
static void cancel_pairs(SubTransactionId subtransaction) {
    int first = events.first_of(subtransaction);
    for (int i = first; i < events.count; i++) {
        if (events[i].opens)
            continue;
        int opened = i - 1;
        while (opened >= first && events[opened].table != events[i].table)
            opened--;
        if (opened < first || !events[opened].opens)
            continue;
        events.remove(i);
        events.remove(opened);
        i -= 2;
    }
}

static void end_subtransaction(SubXactEvent event, SubTransactionId ended, SubTransactionId parent,
                               void*) {
    if (events.count == 0 ||
        (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB))
        return;
    int first = events.first_of(ended);
    if (first == events.count)
        return;
    if (event == SUBXACT_EVENT_ABORT_SUB) {
        events.count = first;
        return;
    }
    events.give_to(parent, first);
    cancel_pairs(parent);
}

static void end_transaction(XactEvent event, void*) {
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
        return;
    events.forget();
}

static void add_event(const ScopeEvent& event) {
    static bool registered = false;
    register_once(&registered, end_transaction, end_subtransaction);
    events.add(event);
}

static void open_scope(Oid table, const char* reason) {
    char* kept = reason == nullptr ? nullptr : MemoryContextStrdup(TopTransactionContext, reason);
    add_event({table, true, kept});
}

// False when there is none.
static bool close_scope(Oid table) {
    int opened = find_open(table);
    if (opened < 0)
        return false;
    if (opened < events.first_of(GetCurrentSubTransactionId())) { // a rollback opens it again
        add_event({table, false, nullptr});
        return true;
    }
    if (events[opened].reason != nullptr)
        pfree(events[opened].reason);
    events.remove(opened);
    return true;
}

Suppression suppression_of(Oid root) {
    if (events.count == 0)
        return {};
    int innermost = Max(find_open(root), find_open(kAllTables));
    if (innermost < 0)
        return {};
    return {true, events[innermost].reason};
}

} // namespace interlock::history

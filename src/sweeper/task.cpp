#include "sweeper/task.h"

#include "server/error.h"
#include "sweeper/state.h"
#include "table/plan.h"
#include "table/subscription.h"

namespace interlock::inline sweeper {

namespace {

struct Attempt {
    Oid table;                      // whose name is kept
    char name[3 * NAMEDATALEN + 8]; // with its database and schema
    bool is_open;
};

} // namespace

static Attempt attempted = {};

// The table's name, or its OID if it was dropped, which each of the look-ups may be the first to
// see.
static char* find_name(Oid table) {
    const char* name = get_rel_name(table);
    if (name == nullptr)
        return psprintf("%u", table);
    return quote_qualified_identifier(get_namespace_name(get_rel_namespace(table)), name);
}

static char* name_in_own_transaction(Oid table) {
    MemoryContext context = CurrentMemoryContext;
    char* name = nullptr;
    char ignored[kErrorBytes];
    (void)in_transaction(ignored,
                         [&] { name = in_context(context, [&] { return find_name(table); }); });
    return name != nullptr ? name : psprintf("%u", table);
}

// A worker that ends itself names the table when it cannot read catalogs any more.
static void keep_name(Oid table) {
    attempted.is_open = true;
    if (attempted.table == table) // many counters and rows come one after the other
        return;
    attempted.table = table;
    attempted.name[0] = '\0';
    const char* name = get_rel_name(table);
    if (name != nullptr)
        snprintf(attempted.name, sizeof(attempted.name), "\"%s\".\"%s\".\"%s\"",
                 get_database_name(MyDatabaseId), get_namespace_name(get_rel_namespace(table)),
                 name);
}

static void note_failure_of(SweepRun* run, const char* name, const char* message) {
    note_failure(run, psprintf("table %s", name), message);
}

void note_failure(SweepRun* run, const char* what, const char* message) {
    copy_message(run->last_error, kErrorBytes, psprintf("%s: %s", what, message));
    come_again(run, GetCurrentTimestamp() + kRetryFailed);
}

void note_table_failure(SweepRun* run, Oid table, const char* message) {
    note_failure_of(run, name_in_own_transaction(table), message);
}

void note_attempt(Oid table, const SweepPosition& position, bool is_batch) {
    with_entry(MyDatabaseId, [&](DatabaseEntry* entry) {
        entry->stopped = {table, position, is_batch};
    });
}

bool is_swept(Oid table) {
    return !is_subscribed(table) && distribution_of(table) == Distribution::kNone;
}

bool begin_table(SweepRun* run, Oid table) {
    if (!is_swept(table))
        return false;
    if (run->left_out.has(table)) {
        note_failure_of(
            run, find_name(table),
            "left out of this run, as a worker was ended before it was done with the table");
        return false;
    }
    keep_name(table);
    with_entry(MyDatabaseId, [&](DatabaseEntry* entry) { entry->table = table; });
    return true;
}

void end_table() {
    if (ProcDiePending) // not for a cancel, which is an error here
        CHECK_FOR_INTERRUPTS();
    attempted.is_open = false;
    with_entry(MyDatabaseId, [](DatabaseEntry* entry) { entry->table = InvalidOid; });
}

const char* attempted_table() { return attempted.is_open ? attempted.name : ""; }

void fire_triggers_at_once() {
    with_spi([] { run_command("SET CONSTRAINTS ALL IMMEDIATE"); });
}

bool run_in_transaction(char* message, void (*body)(void* context), void* context) {
    volatile bool well = true;
    MemoryContext caller = CurrentMemoryContext;
    PG_TRY();
    {
        SetCurrentStatementStartTimestamp();
        StartTransactionCommand();
        PushActiveSnapshot(GetTransactionSnapshot());
        body(context);
        PopActiveSnapshot();
        CommitTransactionCommand();
    }
    PG_CATCH();
    {
        // As PostgresMain() and the autovacuum worker: nothing may interrupt the cleanup, and a
        // cancel of the failed work must not cancel the next.
        HOLD_INTERRUPTS();
        disable_timeout(STATEMENT_TIMEOUT, false);
        QueryCancelPending = false;
        well = false;
        MemoryContextSwitchTo(caller);
        ErrorData* error = CopyErrorData();
        EmitErrorReport();
        FlushErrorState();
        copy_message(message, kErrorBytes, error->message);
        FreeErrorData(error);
        AbortCurrentTransaction();
        RESUME_INTERRUPTS();
    }
    PG_END_TRY();
    MemoryContextSwitchTo(caller);
    return well;
}

} // namespace interlock::inline sweeper

// SELECT ... FOR UPDATE in the order of the keys, whatever order they are given in, so that two
// calls never deadlock.

#include "execution/key_list.h"
#include "execution/read.h"
#include "execution/stored_row.h"
#include "server/arguments.h"
#include "server/deadline.h"
#include "server/error.h"
#include "server/subtransaction.h"
#include "table/column.h"
#include "table/relation_code.h"
#include "table/row.h"
#include "table/row_json.h"

namespace interlock::key_lock {

namespace {

struct RowsCall {
    Relation rel;
    const TableInfo* info;
    KeyList keys;
    JsonMembers shown; // of a row that is locked: what names it, if that is the same for all
    RowLock lock;
    Deadline deadline;
};

} // namespace

static RowsCall read_call(const Arguments& arguments);
static void lock_all(const RowsCall& call, ReturnSetInfo* output);

extern "C" {
PG_FUNCTION_INFO_V1(select_for_update);

// select_for_update(rel, keys, strength, wait, skip_locked)
Datum select_for_update(PG_FUNCTION_ARGS) {
    PreventCommandIfParallelMode("interlock.select_for_update()"); // as for UPDATE
    InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
    auto* output = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    RowsCall call = read_call(Arguments(fcinfo));
    if (call.keys.count > 0)
        lock_all(call, output);
    close_table(call.rel);
    return 0;
}
}

// --- Arguments -----------------------------------------------------------------------------------

static RowStrength strength_argument(const Arguments& arguments, int n) {
    char* strength = arguments.string(n, "strength");
    if (strcmp(strength, "update") == 0)
        return RowStrength::kUpdate;
    if (strcmp(strength, "no_key_update") == 0)
        return RowStrength::kNoKeyUpdate;
    if (strcmp(strength, "share") == 0)
        return RowStrength::kShare;
    if (strcmp(strength, "key_share") == 0)
        return RowStrength::kKeyShare;
    refuse_value("strength", strength, "Use 'update', 'no_key_update', 'share' or 'key_share'.");
}

// How to wait for one row. Rows that are passed over are not waited for, whatever time is left.
static RowWait row_wait(const Deadline& wait, bool skip_locked) {
    if (skip_locked)
        return RowWait::kSkipLocked;
    return wait.has_passed() ? RowWait::kNowait : RowWait::kWait;
}

static void wait_arguments(RowsCall* call, const Arguments& arguments, int n) {
    Deadline wait = Deadline::argument(arguments, n);
    bool skip_locked = arguments.boolean(n + 1, "skip_locked");
    if (skip_locked && !arguments.is_null(n) && !wait.has_passed())
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("cannot both wait for locked rows and skip them"),
                        errhint("Leave out argument \"wait\" or \"skip_locked\".")));
    call->lock.wait = row_wait(wait, skip_locked);
    if (call->lock.wait == RowWait::kWait)
        call->deadline = wait;
}

static RowsCall read_call(const Arguments& arguments) {
    RowsCall call = {nullptr, nullptr, {}, {}, {}, Deadline::after_milliseconds(-1)};
    call.lock.counted_as = CountedKind::kSelectForUpdate;
    call.lock.strength = strength_argument(arguments, 2);
    wait_arguments(&call, arguments, 3);
    call.rel = open_table(arguments.relation(0), RowShareLock);
    call.info = table_info(call.rel);
    call.keys = key_list_argument(arguments, 1, call.rel, call.info);
    if (call.keys.by != nullptr)
        call.shown = json_members(call.info->columns, call.keys.by->attnums);
    return call;
}

// --- Locking -------------------------------------------------------------------------------------

namespace {

struct LockedRow {
    const RowsCall* call;
    const Key* key;
    const char* shown; // the key; null: it is shown when it is needed
};

} // namespace

// Whether the error is that of the lock, and not one that a policy for row security raises.
static bool is_of_lock(Relation rel) {
    if (geterrcode() != ERRCODE_LOCK_NOT_AVAILABLE)
        return false;
    if (!rel->rd_rel->relrowsecurity)
        return true;
    return in_context(CurTransactionContext, [] { return is_timeout(CopyErrorData()); });
}

// The server's message has no table, and a setting that the caller has not set.
static void explain_refused(const LockedRow& row, const char* key) {
    Relation rel = row.call->rel;
    errmsg("could not lock row of table \"%s\"", RelationGetRelationName(rel));
    errdetail_internal("%s", json_object({{"table", shown_name(rel)}, {"key", nullptr, key}}));
    errhint(
        "Another transaction has locked it. Try again later, give a longer wait (at most "
        "lock_timeout), or pass over locked rows with skip_locked => true.");
}

// A refusal without a wait, which nothing below counts where no statement runs.
static void count_at_once(const RowsCall& call) {
    if (call.lock.wait != RowWait::kNowait)
        return;
    count(call.info, CountedKind::kSelectForUpdate, Counter::kCalls);
    count(call.info, CountedKind::kSelectForUpdate, Counter::kConflicts);
}

// In a callback, as catching the error would take a subtransaction for each row.
static void name_row_in_error(void* argument) {
    const auto* row = static_cast<const LockedRow*>(argument);
    const char* key = row->shown != nullptr ? row->shown : key_to_text(row->call->info, *row->key);
    if (is_of_lock(row->call->rel)) {
        count_at_once(*row->call);
        explain_refused(*row, key);
    }
    errcontext("locking row %s of table \"%s\"", key, RelationGetRelationName(row->call->rel));
}

// Without a statement where that is eligible, else by a statement.
static bool lock_one(const RowsCall& call, const Key& key, const DirectReads* reads,
                     Datum* locked_key) {
    if (reads != nullptr)
        return read_next_directly(*reads, key, [&](TupleTableSlot* version) {
            *locked_key =
                members_to_jsonb(RelationGetDescr(call.rel), call.shown, values_in(version));
        });
    StoredRow row = read_row(call.rel, call.info, key, key.by->attnums, call.lock);
    if (row.found)
        *locked_key = stored_row_to_jsonb(row);
    return row.found;
}

// Whether the key can be shown while an error is reported: it is printed by the server's own code,
// and under the settings that there are.
static bool prints_in_errors(const UniqueKey& by) {
    for (int i = 0; i < by.count; i++)
        if (!is_built_in(by.columns[i].type) || !prints_alike(by.columns[i].type))
            return false;
    return true;
}

static bool lock_in_time(const RowsCall& call, const Key& key, const DirectReads* reads,
                         Datum* locked_key) {
    const char* shown = prints_in_errors(*key.by) ? nullptr : key_to_text(call.info, key);
    LockedRow locked = {&call, &key, shown};
    ErrorContextCallback context = {error_context_stack, name_row_in_error, &locked};
    error_context_stack = &context;
    bool found;
    call.deadline.bound([&] { found = lock_one(call, key, reads, locked_key); });
    error_context_stack = context.previous;
    return found;
}

static void lock_all(const RowsCall& call, ReturnSetInfo* output) {
    MemoryContext row_memory =
        AllocSetContextCreate(CurrentMemoryContext, "select_for_update", ALLOCSET_DEFAULT_SIZES);
    DirectReads reads;
    bool direct = call.keys.by != nullptr &&
                  begin_direct_reads(&reads, call.rel, call.info, call.keys.by, call.lock);
    for (int i = 0; i < call.keys.count; i++) {
        CHECK_FOR_INTERRUPTS();
        Datum key;
        bool found = in_context(row_memory, [&] {
            return lock_in_time(call, call.keys.keys[i], direct ? &reads : nullptr, &key);
        });
        count(call.info, CountedKind::kSelectForUpdate, Counter::kCalls);
        bool is_null = false;
        if (found)
            tuplestore_putvalues(output->setResult, output->setDesc, &key, &is_null);
        MemoryContextReset(row_memory);
    }
    if (direct)
        end_direct_reads(reads);
}

} // namespace interlock::key_lock

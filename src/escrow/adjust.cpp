// adjust and try_adjust: in memory where the counter has an entry, else by the
// direct path. And what reserve has in common with them.

#include "escrow/adjust.h"
#include "escrow/errors.h"
#include "marker/marker.h"
#include "server/arguments.h"
#include "server/deadline.h"
#include "server/error.h"
#include "server/result_row.h"
#include "server/subtransaction.h"
#include "table/row.h"

namespace interlock::escrow {

constexpr const char* kOutcomes[] = {"adjusted", "insufficient", "pending", "not_found"};

static Delta delta_argument(const Adjustment& call, const Arguments& arguments);
static Datum remaining_of(const Adjustment& call);

extern "C" {
PG_FUNCTION_INFO_V1(adjust);
PG_FUNCTION_INFO_V1(try_adjust);

// adjust(rel, key, column_name, delta, wait) -> remaining
Datum adjust(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Adjustment call = read_adjustment(arguments, "interlock.adjust()", 4);
    Delta delta = delta_argument(call, arguments);
    Verdict verdict = adjust_in_time(&call, delta);
    const KeyedRow& row = call.counter->row;
    if (verdict == Verdict::kNoRow)
        raise_no_such_row(row.rel, row.info, *row.key);
    if (verdict != Verdict::kGranted)
        raise_not_enough(*call.counter, delta.amount, verdict,
                         call.knows_after ? &call.after : nullptr);
    Datum remaining = remaining_of(call);
    close_table(row.rel);
    return remaining;
}

// try_adjust(rel, key, column_name, delta, wait) -> (outcome, remaining)
Datum try_adjust(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Adjustment call = read_adjustment(arguments, "interlock.adjust()", 4);
    Verdict verdict = adjust_in_time(&call, delta_argument(call, arguments));
    Datum values[2] = {CStringGetTextDatum(kOutcomes[static_cast<int>(verdict)]), 0};
    bool nulls[2] = {false, verdict == Verdict::kNoRow || !call.knows_after};
    if (!nulls[1])
        values[1] = remaining_of(call);
    close_table(call.counter->row.rel);
    return result_row(fcinfo, values, nulls);
}
}

static Delta delta_argument(const Adjustment& call, const Arguments& arguments) {
    int64 amount = amount_argument(arguments, 3, "delta", *call.counter->column);
    if (amount == 0)
        refuse_argument("delta", "must not be zero");
    return {amount, 0};
}

// If this transaction commits: its own return is not in inf yet.
static Datum remaining_of(const Adjustment& call) {
    return numeric_of(*call.counter->column, call.after.range.inf);
}

Adjustment adjustment_of(const EscrowCounter& counter, const Deadline& deadline) {
    auto* copy = static_cast<EscrowCounter*>(palloc(sizeof(EscrowCounter)));
    *copy = counter;
    bool policies = has_policies(counter.row.rel);
    bool in_row = !has_escrow_memory() || IsolationIsSerializable() || policies;
    return {copy, deadline, in_row, policies, {}, false, false};
}

Adjustment read_adjustment(const Arguments& arguments, const char* function, int wait) {
    Deadline deadline = Deadline::argument(arguments, wait);
    PreventCommandIfReadOnly(function);
    PreventCommandIfParallelMode(function);
    Relation rel = open_table(arguments.relation(0), RowExclusiveLock);
    const TableInfo* info = table_info(rel);
    AttrNumber attnum = column_number(rel, arguments.name(2, "column_name"));
    const EscrowColumn* column = usable_escrow(rel, info, attnum);
    require_change_rights(rel, *column);
    auto* key = static_cast<Key*>(palloc(sizeof(Key)));
    *key = key_argument(arguments, 1, rel, info);
    require_counter_key(rel, info, *column, *key);
    return adjustment_of(counter_of({rel, info, key}, column), deadline);
}

static LineRef line_of(const Adjustment& call) {
    return line_of(call.counter->row.info, CountedKind::kEscrow);
}

static Verdict write_row_of(Adjustment* call, const Delta& delta, int64 value) {
    Verdict verdict = Verdict::kNoEntry;
    // Parts that its snapshot does not have: adjust_in_time() does not come to count it.
    count_errors(line_of(*call),
                 [&] { verdict = change_in_row(call->counter, delta, &value, &call->after); });
    if (verdict == Verdict::kGranted && !write_value(*call->counter, value))
        raise_suppressed(call->counter->row.rel);
    return verdict;
}

// A marker of another holder keeps the row from being written, and not the counter from being
// adjusted. SERIALIZABLE and row security need the write.
static bool may_pass_marker(const Adjustment& call) {
    return marker::marker_of(call.counter->row.info) != nullptr && !IsolationIsSerializable() &&
           !call.has_policies;
}

// Null, or the error that is not about a marker.
static ErrorData* try_to_write(Adjustment* call, const Delta& delta, int64 value,
                               Verdict* verdict) {
    int64 id = call->counter->id;
    ErrorData* error = attempt_if([&] {
        *verdict = write_row_of(call, delta, value);
        return *verdict == Verdict::kGranted;
    });
    if (error != nullptr)
        call->counter->id = id; // a new counter is gone with the subtransaction
    if (error == nullptr || error->sqlerrcode != kRowBeingEdited)
        return error;
    *verdict = change_beside_row(call->counter, delta, value, &call->after);
    return nullptr;
}

static Verdict adjust_in_row(Adjustment* call, const Delta& delta, int64 value) {
    if (!may_pass_marker(*call))
        return write_row_of(call, delta, value);
    Verdict verdict = Verdict::kNoEntry;
    ErrorData* error = try_to_write(call, delta, value, &verdict);
    if (error != nullptr)
        ReThrowError(error);
    return verdict;
}

static Verdict adjust_once(Adjustment* call, const Delta& delta) {
    Verdict verdict =
        call->in_row ? Verdict::kNoEntry : change_in_memory(call->counter, delta, &call->after);
    if (verdict != Verdict::kNoEntry)
        return verdict;
    int64 value;
    if (!lock_value(*call->counter, true, &value, CountedKind::kEscrow))
        return Verdict::kNoRow;
    return adjust_in_row(call, delta, value);
}

// Runs body(), which waits for a lock. False: the deadline has passed. The wait is counted here and
// not by an error context, which would count the call of an error that goes no further.
template <typename Body>
static bool wait_in_time(Adjustment* call, Body&& body) {
    LineRef line = line_of(*call);
    instr_time start;
    INSTR_TIME_SET_CURRENT(start);
    ErrorData* error = attempt([&] { call->deadline.bound(body); }, OnCancel::kReturn);
    count_wait(line, start, error != nullptr ? error->sqlerrcode : 0);
    if (error == nullptr)
        return true;
    if (call->deadline.is_never() || error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE) {
        count(line, Counter::kCalls); // adjust_in_time() does not come to it
        ReThrowError(error);
    }
    call->timed_out = true;
    return false;
}

// Waits for one transaction whose end can make room. False: the deadline has passed, or no end of
// others makes enough of it: what is missing is reserved, or taken by this transaction.
static bool wait_for_undecided(Adjustment* call, const Delta& delta, int* tries) {
    constexpr int kMostTries = 100;
    const EscrowCounter& counter = *call->counter;
    if (call->deadline.has_passed() || !can_fit(call->after, delta.amount, counter.limits))
        return false;
    TransactionId xid = counter.id != 0
                            ? deciding_transaction(*counter.column, counter.id, delta.amount)
                            : InvalidTransactionId;
    if (!TransactionIdIsValid(xid)) { // its part comes after its grant, or goes before its callback
        CHECK_FOR_INTERRUPTS();
        pg_usleep(1000);
        return ++*tries < kMostTries;
    }
    *tries = 0;
    return wait_in_time(call, [&] { XactLockTableWait(xid, nullptr, nullptr, XLTW_None); });
}

static Verdict adjust_until_decided(Adjustment* call, const Delta& delta) {
    auto wait = [&] { (void)enter_gate(*call->counter, ShareLock); };
    if (!enter_gate(*call->counter, ShareLock, false) &&
        (call->deadline.has_passed() || !wait_in_time(call, wait)))
        return Verdict::kPending;
    for (int tries = 0;;) {
        Verdict verdict = adjust_once(call, delta);
        call->knows_after = true;
        if (verdict == Verdict::kGranted && delta.amount > 0)
            call->after.range.inf = add_amounts(call->after.range.inf, delta.amount);
        if (verdict != Verdict::kPending || !wait_for_undecided(call, delta, &tries))
            return verdict;
    }
}

// A row that the caller sees and may not change is not found behind the gate.
static Verdict adjust_seen(Adjustment* call, const Delta& delta) {
    if (!sees_row(*call->counter))
        return Verdict::kNoRow;
    Verdict verdict = adjust_until_decided(call, delta);
    if (verdict == Verdict::kNoRow)
        leave_gate(*call->counter, ShareLock);
    return verdict;
}

Verdict adjust_in_time(Adjustment* call, const Delta& delta) {
    Verdict verdict =
        call->has_policies ? adjust_seen(call, delta) : adjust_until_decided(call, delta);
    LineRef line = line_of(*call);
    count(line, Counter::kCalls);
    if (verdict == Verdict::kPending && !call->timed_out)
        count(line, Counter::kConflicts);
    else if (verdict == Verdict::kInsufficient)
        count(line, Counter::kRefusals);
    return verdict;
}

} // namespace interlock::escrow

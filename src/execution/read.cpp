#include "execution/read.h"

#include "execution/eligible.h"
#include "execution/returned.h"
#include "server/scope.h"

namespace interlock::inline execution {

static LockTupleMode lock_mode(RowLock lock) {
    switch (lock.strength) {
    case RowStrength::kKeyShare:
        return LockTupleKeyShare;
    case RowStrength::kShare:
        return LockTupleShare;
    case RowStrength::kNoKeyUpdate:
        return LockTupleNoKeyExclusive;
    default:
        return LockTupleExclusive;
    }
}

static LockWaitPolicy wait_policy(RowLock lock) {
    switch (lock.wait) {
    case RowWait::kNowait:
        return LockWaitError;
    case RowWait::kSkipLocked:
        return LockWaitSkip;
    default:
        return LockWaitBlock;
    }
}

// Locks the newest version of the row in the slot, and puts it there. False when it was deleted,
// has another key by now, is locked and the call does not wait, or when a later command has changed
// it.
static bool lock_newest(const KeyedRow& row, RowLock lock, TupleTableSlot* slot) {
    TM_FailureData failure;
    auto lock_at = [&](ItemPointerData place, LockWaitPolicy wait) {
        return table_tuple_lock(
            row.rel, &place, GetActiveSnapshot(), slot, GetCurrentCommandId(true), lock_mode(lock),
            wait, TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS | TUPLE_LOCK_FLAG_FIND_LAST_VERSION,
            &failure);
    };
    TM_Result result =
        lock_counted(line_of(row.info, lock.counted_as), wait_policy(lock), slot, lock_at);
    switch (result) {
    case TM_Ok:
        return !failure.traversed || has_key(row, row_in(slot));
    case TM_WouldBlock:
    case TM_SelfModified:
    case TM_Deleted:
        return false;
    default:
        elog(ERROR, "unexpected table_tuple_lock status: %u", result);
    }
    pg_unreachable();
}

bool begin_direct_reads(DirectReads* reads, Relation rel, const TableInfo* info,
                        const UniqueKey* by, RowLock lock) {
    if (!may_read_without_statement(rel, info, *by, lock))
        return false;
    Relation index = open_key_index(*by, AccessShareLock);
    if (index == nullptr)
        return false;
    CommandCounterIncrement();
    *reads = {
        rel, info, by, lock, index, begin_probes(rel, index), table_slot_create(rel, nullptr)};
    return true;
}

bool read_next_directly(const DirectReads& reads, const Key& key, RowCallback visit) {
    Assert(key.by == reads.by);
    KeyedRow row = {reads.rel, reads.info, &key};
    PushActiveSnapshot(GetTransactionSnapshot());
    bool found =
        probe_next(row, reads.scan, reads.slot) &&
        (reads.lock.strength == RowStrength::kNone || lock_newest(row, reads.lock, reads.slot));
    if (found)
        visit.call(visit.closure, reads.slot);
    PopActiveSnapshot();
    return found;
}

void end_direct_reads(const DirectReads& reads) {
    index_endscan(reads.scan);
    ExecDropSingleTupleTableSlot(reads.slot);
    index_close(reads.index, NoLock);
}

static void say(Statement* statement, const RowRead& read) {
    statement->add("SELECT");
    add_returned(statement, " ", read.row.info, read.columns, read.count);
    statement->add(" FROM %s t WHERE ", target_of(read.row.rel, read.row.info));
    add_key_condition(statement, read.row.info, *read.row.key);
    add_row_lock(statement, read.lock);
}

static Bitmapset* columns_of(const RowRead& read) {
    Bitmapset* columns = nullptr;
    for (int i = 0; i < read.count; i++)
        columns = bms_add_member(columns, read.columns[i]);
    return columns;
}

static bool read_by_statement(const RowRead& read, NullableDatum* values) {
    prevent_in_parallel_mode(read.lock);
    bool found = false;
    MemoryContext caller = CurrentMemoryContext;
    with_spi([&] {
        PlanShape shape = {RelationGetRelid(read.row.rel), read.kind,     columns_of(read),
                           row_lock_number(read.lock),     read.by_index, read.row.key->by->index};
        TablePlan plan = plan_of(shape, [&](Statement* statement) { say(statement, read); });
        Parameters parameters(read.row.key->by->count);
        add_key(&parameters, *read.row.key);
        // What does not wait is counted by the function.
        CountedKind kind =
            read.lock.wait == RowWait::kWait ? read.lock.counted_as : CountedKind::kNone;
        count_errors(line_of(read.row.info, kind),
                     [&] { found = run_plan(plan, parameters, 1) > 0; });
        if (found)
            in_context(caller, [&] {
                copy_result(read.row.info, read.columns, read.count, values);
                return 0;
            });
    });
    return found;
}

// Who writes the version or keeps others from writing it, if that is one transaction; else invalid:
// one of several lockers may be the own transaction.
static TransactionId writer_of(HeapTupleHeader version) {
    uint16 marks = version->t_infomask;
    if ((marks & (HEAP_XMAX_INVALID | HEAP_XMAX_COMMITTED)) != 0)
        return InvalidTransactionId;
    if (!HEAP_XMAX_IS_LOCKED_ONLY(marks))
        return HeapTupleHeaderGetUpdateXid(version);
    bool is_foreign_key = HEAP_XMAX_IS_KEYSHR_LOCKED(marks); // no update of other columns waits
    bool is_shared = (marks & HEAP_XMAX_IS_MULTI) != 0;
    return is_foreign_key || is_shared ? InvalidTransactionId : HeapTupleHeaderGetRawXmax(version);
}

static bool is_busy(TupleTableSlot* slot) {
    HeapTupleHeader version = row_in(slot)->t_data;
    if ((version->t_infomask & HEAP_XMAX_INVALID) != 0) // nearly always
        return false;
    Buffer buffer = reinterpret_cast<BufferHeapTupleTableSlot*>(slot)->buffer;
    LockBuffer(buffer, BUFFER_LOCK_SHARE);
    TransactionId writer = writer_of(version);
    LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
    return TransactionIdIsValid(writer) && !TransactionIdIsCurrentTransactionId(writer) &&
           TransactionIdIsInProgress(writer);
}

bool read_row(const RowRead& read, NullableDatum* values) {
    DirectOutcome outcome = read_directly(read.row, read.lock, [&](TupleTableSlot* version) {
        copy_columns(version, read.columns, read.count, values);
        if (read.place != nullptr)
            *read.place = version->tts_tid;
        if (read.is_busy != nullptr)
            *read.is_busy = is_busy(version);
    });
    if (outcome == DirectOutcome::kDeclined)
        return read_by_statement(read, values);
    return outcome == DirectOutcome::kDone;
}

} // namespace interlock::inline execution

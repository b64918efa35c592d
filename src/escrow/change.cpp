#include "escrow/change.h"

#include "escrow/notify.h"
#include "escrow/own_write.h"
#include "escrow/reservation.h"
#include "escrow/transaction.h"
#include "execution/read.h"
#include "execution/write.h"
#include "server/error.h"
#include "server/scope.h"
#include "server/siphash.h"
#include "server/subtransaction.h"
#include "sweeper/deadline.h"
#include "table/own_table.h"
#include "table/restricted.h"
#include "table/row.h"
#include "version/unseen.h"

namespace interlock::escrow {

// Advisory locks with a fourth field of their own: pg_advisory_* and key locks cannot reach them.
constexpr uint16 kGateClass = 70;

// By a hash of 64 bits: who may write one row cannot find a key for it that closes the gate of a
// row that policies hide, as with 32 bits, which take seconds.
static LOCKTAG gate_of(const EscrowCounter& counter) {
    const text* key = counter.name.key;
    SipKey place = {{counter.name.rel, static_cast<uint64>(counter.column->attnum)}};
    uint64 hash = SipHash(place).finish(VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key));
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, static_cast<uint32>(hash >> 32),
                         static_cast<uint32>(hash), kGateClass);
    return tag;
}

static void require_privilege(Relation rel, AttrNumber column, AclMode right) {
    if (!has_column_privilege(RelationGetRelid(rel), column, right))
        aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, RelationGetRelationName(rel));
}

static CounterState committed_state(const EscrowCounter& counter, int64 value) {
    if (counter.id == 0)
        return {{value, value}, {}};
    UndecidedParts parts = read_undecided(*counter.column, counter.id);
    CounterState state = {range_of(value, parts), {}};
    for (int i = 0; i < parts.count; i++)
        if (!TransactionIdIsCurrentTransactionId(parts.in_doubt[i].xid))
            state.open.add(parts.in_doubt[i].effects);
    return state;
}

// True if there is an entry.
static bool pin_and_note(const EscrowCounter& counter, const Delta& delta) {
    if (!has_escrow_memory())
        return false;
    need_grant_room();
    EscrowEntry* entry;
    if (!pin_entry(counter.id, counter.column->epoch, delta, &entry))
        return false;
    note_grant(entry, delta);
    return true;
}

EscrowCounter counter_of(const KeyedRow& row, const EscrowColumn* column) {
    EscrowCounter counter = {row, column, limits_of(*column), {}, 0};
    counter.name = {row.info->relid, &column->label, counter_key(row.info, *column, *row.key)};
    return counter;
}

EscrowCounter* counter_of_name(Relation rel, const TableInfo* info, const EscrowColumn* column,
                               int64 id, text* name) {
    auto* key = static_cast<Key*>(palloc(sizeof(Key)));
    if (!read_counter_key(info, *column, name, key))
        return nullptr;
    auto* counter = static_cast<EscrowCounter*>(palloc(sizeof(EscrowCounter)));
    *counter = {
        {rel, info, key}, column, limits_of(*column), {info->relid, &column->label, name}, id};
    return counter;
}

void require_change_rights(Relation rel, const EscrowColumn& column) {
    require_privilege(rel, column.attnum, ACL_UPDATE);
    require_privilege(rel, column.attnum, ACL_SELECT);
    require_key_rights(rel, column);
}

void require_key_rights(Relation rel, const EscrowColumn& column) {
    for (int i = 0; i < column.key_count; i++)
        require_privilege(rel, column.key[i], ACL_SELECT);
}

bool enter_gate(const EscrowCounter& counter, LOCKMODE mode, bool wait) {
    LOCKTAG tag = gate_of(counter);
    // Not the portal's, for leave_gate(): a lock that a subtransaction has waited for becomes one
    // of the transaction.
    return as_owner(CurTransactionResourceOwner,
                    [&] { return LockAcquire(&tag, mode, false, !wait) != LOCKACQUIRE_NOT_AVAIL; });
}

void leave_gate(const EscrowCounter& counter, LOCKMODE mode) {
    LOCKTAG tag = gate_of(counter);
    as_owner(CurTransactionResourceOwner, [&] { return LockRelease(&tag, mode, false); });
}

bool has_policies(Relation rel) {
    return check_enable_rls(RelationGetRelid(rel), InvalidOid, true) == RLS_ENABLED;
}

bool sees_row(const EscrowCounter& counter) {
    NullableDatum stored;
    return read_row({counter.row, PlanKind("escrow_see"), &counter.column->attnum, 1}, &stored);
}

void find_id(EscrowCounter* counter) {
    if (counter->id == 0)
        counter->id = find_counter(counter->name);
}

// Loads the entry (E6), under the lock of the row, which ends with a subtransaction. False: the
// counter cannot have an entry now; or the row is locked, and the call does not wait.
static bool load_entry(const EscrowCounter& counter, bool wait,
                       CountedKind counted_as = CountedKind::kNone) {
    bool entered = false;
    ErrorData* error = attempt_if([&] {
        int64 value;
        if (lock_value(counter, wait, &value, counted_as)) {
            // Entered while this waited for the lock. What is read now could be behind when that
            // entry is evicted meanwhile: its grants do not wait for this lock.
            entered = has_entry(counter.id, counter.column->epoch);
            if (entered)
                return false;
            UndecidedParts parts = read_undecided(*counter.column, counter.id);
            entered = enter_counter(counter.id, counter.column->epoch, counter.column->trigger_oid,
                                    range_of(value, parts), parts.in_doubt, parts.count);
        }
        return false;
    });
    if (error != nullptr)
        ReThrowError(error);
    return entered;
}

// Tests the delta in memory, and notes what was granted (E1). kNoEntry: there is none.
static Verdict grant(const EscrowCounter& counter, const Delta& delta, CounterState* after) {
    if (counter.id == 0 || !has_escrow_memory())
        return Verdict::kNoEntry;
    need_grant_room();
    EscrowEntry* entry;
    Verdict verdict =
        grant_in_memory(counter.id, counter.column->epoch, delta, counter.limits, &entry, after);
    if (verdict == Verdict::kGranted)
        note_grant(entry, delta);
    else if (verdict == Verdict::kPending)
        after->open.remove(own_effects(entry));
    return verdict;
}

static void enter_part(const EscrowCounter& counter, const Delta& delta) {
    insert_part(*counter.column, counter.id, delta);
    if (delta.amount > 0)
        notify_of_return(counter.row, *counter.column);
    note_deadline(GetCurrentStatementStartTimestamp() + USECS_PER_SEC);
}

Verdict change_in_memory(EscrowCounter* counter, const Delta& delta, CounterState* after) {
    constexpr int kMostLoads = 2; // another session may evict an entry that was just loaded
    find_id(counter);
    if (counter->id == 0 || wrote_row_of(counter->id))
        return Verdict::kNoEntry;
    Verdict verdict = grant(*counter, delta, after);
    for (int loads = 0; verdict == Verdict::kNoEntry && loads < kMostLoads; loads++) {
        if (!load_entry(*counter, true, CountedKind::kEscrow))
            return verdict;
        verdict = grant(*counter, delta, after);
    }
    if (verdict == Verdict::kGranted)
        enter_part(*counter, delta);
    return verdict;
}

// Under the lock of the row, whose column has `value`. The counter has an id then.
static Verdict grant_under_lock(EscrowCounter* counter, const Delta& delta, int64 value,
                                CounterState* after) {
    find_id(counter);
    Verdict verdict = grant(*counter, delta, after);
    if (verdict == Verdict::kNoEntry) {
        *after = committed_state(*counter, value);
        verdict = test_delta(after->range, delta.amount, counter->limits);
        if (verdict == Verdict::kGranted)
            (delta.amount < 0 ? after->range.inf : after->range.sup) += delta.amount;
    }
    if (verdict == Verdict::kGranted && counter->id == 0)
        counter->id = create_counter(counter->name);
    return verdict;
}

Verdict change_in_row(EscrowCounter* counter, const Delta& delta, int64* value,
                      CounterState* after) {
    Verdict verdict = grant_under_lock(counter, delta, *value, after);
    if (verdict != Verdict::kGranted)
        return verdict;
    AmountSum sum = {*value, 0};
    take_parts(*counter->column, counter->id, &sum);
    sum.add(delta.amount);
    // What it was granted rests on parts that the transaction does not see.
    if (!sum.is_within(counter->limits))
        raise_concurrent_update();
    *value = sum.low;
    note_own_row(counter->id);
    if (delta.amount > 0)
        notify_of_return(counter->row, *counter->column);
    return verdict;
}

// Without an entry a fold of this transaction may take the part (E7).
Verdict change_beside_row(EscrowCounter* counter, const Delta& delta, int64 value,
                          CounterState* after) {
    Verdict verdict = grant_under_lock(counter, delta, value, after);
    if (verdict == Verdict::kGranted) {
        enter_part(*counter, delta);
        note_own_row(counter->id);
    }
    return verdict;
}

bool enter_untested(const EscrowCounter& counter, const Delta& delta, bool wait) {
    bool held = pin_and_note(counter, delta);
    if (!held)
        as_untrusted(counter.row.rel->rd_rel->relowner, SECURITY_NOFORCE_RLS, [&] {
            held = has_escrow_memory() && !wrote_row_of(counter.id) && load_entry(counter, wait) &&
                   pin_and_note(counter, delta);
            int64 value;
            if (!held && lock_value(counter, wait, &value)) {
                // Another session may have entered it before this had the lock.
                if (!pin_and_note(counter, delta))
                    note_own_row(counter.id); // a fold of this transaction takes the part (E7)
                held = true;
            }
        });
    if (held)
        enter_part(counter, delta);
    return held;
}

bool write_value(const EscrowCounter& counter, int64 value) {
    AttrNumber attnum = counter.column->attnum;
    RowWrite write(counter.row, PlanKind("escrow_write"));
    write.variant = attnum;
    write.set(attnum, write.terms.stored_value(attnum, {value_of(*counter.column, value), false}));
    bool written = false;
    as_escrow_write(counter.row, attnum, value, [&] {
        version::as_unseen_write(RelationGetRelid(counter.row.rel),
                                 [&] { written = write_row(write); });
    });
    return written;
}

bool lock_value(const EscrowCounter& counter, bool wait, int64* value, CountedKind counted_as) {
    AttrNumber attnum = counter.column->attnum;
    RowRead read = {
        counter.row,
        PlanKind("escrow_lock"),
        &attnum,
        1,
        {RowStrength::kNoKeyUpdate, wait ? RowWait::kWait : RowWait::kSkipLocked, counted_as}};
    NullableDatum stored;
    if (!read_row(read, &stored))
        return false;
    if (stored.isnull)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("column \"%s\" of the row of table \"%s\" is null",
                        NameStr(counter.column->name), RelationGetRelationName(counter.row.rel))));
    *value = amount_of(*counter.column, stored.value);
    return true;
}

void end_parts(const EscrowCounter& counter, AmountSum* sum) {
    take_parts(*counter.column, counter.id, sum);
    if (read_undecided(*counter.column, counter.id).committed_count > 0)
        raise_concurrent_update();
    end_expired(*counter.column, counter.id, sum);
    drop_entry(counter.id);
    note_own_row(counter.id);
}

} // namespace interlock::escrow

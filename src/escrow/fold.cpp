// Folding, as the table's owner and restricted: in the caller's transaction by fold_escrow, in one
// of its own for each counter by the sweeper. A marker of another holder makes it fail; the parts
// stay, and the value is the same.

#include "escrow/fold.h"

#include "escrow/change.h"
#include "escrow/counter_run.h"
#include "escrow/memory.h"
#include "escrow/reservation_sweep.h"
#include "server/arguments.h"
#include "server/error.h"
#include "server/sequence.h"
#include "server/subtransaction.h"
#include "sweeper/deadline.h"
#include "table/own_table.h"
#include "table/plan.h"
#include "table/restricted.h"
#include "table/subscription.h"

namespace interlock::escrow {

namespace {

struct DueCounters {
    DueCounter* first;
    int count;
};

} // namespace

// Of a query for counters, in the caller's context.
static DueCounters read_due(const char* query) {
    MemoryContext context = CurrentMemoryContext;
    DueCounters due = {};
    as_owner_of(internal_table("escrow_part"), [&] {
        with_spi([&] {
            run_command(query);
            due.count = static_cast<int>(SPI_processed);
            due.first = static_cast<DueCounter*>(
                MemoryContextAllocHuge(context, sizeof(DueCounter) * (due.count + 1)));
            for (int i = 0; i < due.count; i++)
                due.first[i] = due_in_row(i, context);
        });
    });
    return due;
}

// Those of a column, or of one row, in the order of their ids.
static DueCounters due_of(Oid rel, const EscrowColumn& column, const text* key) {
    return read_due(psprintf(
        "SELECT c.id, c.rel::pg_catalog.oid, c.column_name, c.key FROM "
        "interlock_internal.escrow_counter c WHERE c.rel::pg_catalog.oid OPERATOR(pg_catalog.=) %u "
        "AND c.column_name OPERATOR(pg_catalog.=) %s::pg_catalog.name%s AND "
        "EXISTS (SELECT FROM interlock_internal.escrow_part p WHERE p.counter "
        "OPERATOR(pg_catalog.=) c.id) ORDER BY c.id USING OPERATOR(pg_catalog.<)",
        rel, quote_literal_cstr(NameStr(column.label)),
        key == nullptr ? ""
                       : psprintf(" AND c.key OPERATOR(pg_catalog.=) %s::pg_catalog.text",
                                  quote_literal_cstr(text_to_cstring(key)))));
}

static const EscrowColumn* column_of(const TableInfo* info, const DueCounter& due) {
    const EscrowColumn* column = escrow_of_label(info, NameStr(due.column));
    bool is_usable = column != nullptr && column->attnum != InvalidAttrNumber &&
                     column->twin == nullptr && key_of_counters(info, *column) != nullptr;
    return is_usable ? column : nullptr;
}

namespace {

// kNotInUse: the column is gone or has no triggers, or no unique index names the rows. kOtherKey:
// the counter is of another key, others of the column need not be. The parts stay. kNoRow: there
// is none, or it is locked. kSome: there may be more parts.
enum class Fold : uint8 { kNotInUse, kOtherKey, kNoTable, kNoRow, kSome, kFolded };

} // namespace

// Parts that came after the snapshot may pay for those that it has.
static void require_limits(const EscrowCounter& counter, const AmountSum& value) {
    if (IsolationUsesXactSnapshot() && !value.is_within(counter.limits))
        raise_concurrent_update();
}

// A call by a user waits for the row.
static Fold fold_counter(Relation rel, const EscrowColumn* column, const DueCounter& due,
                         bool is_by_hand, TimestampTz stop_at = DT_NOEND) {
    const TableInfo* info = table_info(rel);
    Fold result = Fold::kNotInUse;
    if (column == nullptr)
        return result;
    auto fold = [&] {
        const EscrowCounter* counter = counter_of_name(rel, info, column, due.id, due.key);
        result = Fold::kOtherKey;
        if (counter == nullptr)
            return;
        int64 value;
        result = Fold::kNoRow;
        if (!lock_value(*counter, is_by_hand, &value))
            return;
        AmountSum after = {value, 0};
        bool is_all = take_parts(*column, due.id, &after, stop_at, &counter->limits);
        result = is_all ? Fold::kFolded : Fold::kSome;
        require_limits(*counter, after);
        if (after.amount() != value && !write_value(*counter, after.amount()))
            ereport(ERROR, (errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
                            errmsg("a trigger or rule of table \"%s\" suppresses the fold of an "
                                   "escrow counter",
                                   RelationGetRelationName(rel))));
    };
    Oid owner = rel->rd_rel->relowner;
    if (is_by_hand && owner == GetUserId()) // whose triggers may be deferred, as in an UPDATE
        as_user(owner, SECURITY_NOFORCE_RLS, fold);
    else
        as_untrusted(owner, SECURITY_NOFORCE_RLS, fold);
    return result;
}

// --- The sweeper ---------------------------------------------------------------------------------

constexpr int kMostOfPage = 1000;

namespace {

struct DuePage {
    DueCounters due;
    int64 next; // where the next one begins; 0: there is none
    bool has_passed_over;
};

} // namespace

static DueCounter due_counter(int64 id) {
    DueCounter due = {id, InvalidOid, {}, nullptr};
    (void)read_counter(id, &due.rel, &due.column, &due.key); // it may be gone
    return due;
}

// Of all tables, from an id on, in the order of ids, in the current context. It walks over the
// counters that have parts, and no others, and not for long.
static DuePage due_page(const CounterRun& fold, int64 from) {
    DuePage page = {};
    page.next = from;
    page.due.first = static_cast<DueCounter*>(palloc(sizeof(DueCounter) * kMostOfPage));
    TimestampTz stop_at = GetCurrentTimestamp() + longest_turn(fold) * INT64CONST(1000);
    while (page.next != 0 && page.due.count < kMostOfPage && GetCurrentTimestamp() < stop_at) {
        NextCounter next = next_counter_with_parts(page.next);
        page.next = next.resume;
        if (next.id != 0)
            page.due.first[page.due.count++] = due_counter(next.id);
        else if (next.resume != 0)
            page.has_passed_over = true;
    }
    return page;
}

// Millions of parts would not be done in time, in no run: some in each, for half of its time.
static Fold fold_due(const CounterRun& run, const DueCounter& due) {
    TimestampTz stop_at = GetCurrentTimestamp() + longest_turn(run) * INT64CONST(500);
    if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(due.rel)))
        return forget_counter(due.id, stop_at) ? Fold::kFolded : Fold::kSome;
    if (!ConditionalLockRelationOid(due.rel, RowExclusiveLock))
        return Fold::kNoTable;
    Relation rel = try_relation_open(due.rel, NoLock);
    if (rel == nullptr)
        return Fold::kNoTable;
    Fold result = fold_counter(rel, column_of(table_info(rel), due), due, false, stop_at);
    relation_close(rel, NoLock);
    return result;
}

// Where the run begins: at any counter, so that those which fail or take long, of whatever tables,
// do not keep others from their turn.
static int64 any_counter() {
    int64 last = value_of_sequence(internal_table("escrow_counter_id"));
    return 1 +
           static_cast<int64>(static_cast<double>(last) * pg_prng_double(&pg_global_prng_state));
}

// Their parts are not seen yet, and nothing runs here when they are decided. A prepared transaction
// has its locks without a process.
static bool has_prepared_parts() {
    bool found = false;
    with_spi([&] {
        run_command(psprintf(
            "SELECT FROM pg_catalog.pg_locks l WHERE l.pid IS NULL AND l.database "
            "OPERATOR(pg_catalog.=) %u AND l.relation OPERATOR(pg_catalog.=) ANY "
            "(ARRAY[%u, %u]) LIMIT 1",
            MyDatabaseId, internal_table("escrow_part"), internal_table("escrow_reservation")));
        found = SPI_processed > 0;
    });
    return found;
}

// In the run's context, which outlives the transaction. False: it has failed.
static bool next_page(CounterRun* fold, int64 from, DuePage* page) {
    char message[kErrorBytes] = "";
    *page = {};
    end_table();
    if (in_transaction(message, [&] {
            settle_notes();
            if (has_internal_table("escrow_part"))
                *page = in_context(fold->context, [&] { return due_page(*fold, from); });
        }))
        return true;
    note_failure(fold->run, "escrow", message);
    return false;
}

static void note_result(CounterRun* fold, const DueCounter& due, Fold result, TimestampTz began) {
    SweepRun* run = fold->run;
    switch (result) {
    case Fold::kFolded:
        note_fold(due.id, began);
        fold->has_worked = true;
        break;
    case Fold::kSome: // others have their turn first
        come_again(run, run->start);
        fold->has_worked = true;
        break;
    case Fold::kNoRow:
        come_again(run, GetCurrentTimestamp() + kRetryFailed);
        break;
    case Fold::kNoTable:
        leave_out(fold, due.rel);
        come_again(run, GetCurrentTimestamp() + kRetryLocked);
        break;
    case Fold::kOtherKey:
    case Fold::kNotInUse:
        break;
    }
}

// False: the run's time is over.
static bool fold_page(CounterRun* fold, const DueCounters& due, int64 before) {
    for (int i = 0; i < due.count && due.first[i].id < before; i++) {
        const DueCounter& counter = due.first[i];
        Fold result = Fold::kNoRow;
        TimestampTz began = GetCurrentTimestamp();
        Turn turn = run_counter(fold, counter.rel, [&] { result = fold_due(*fold, counter); });
        if (turn == Turn::kOver) {
            come_again_for_rest(fold);
            return false;
        }
        if (turn == Turn::kDone)
            note_result(fold, counter, result, began);
    }
    return true;
}

static bool fold_between(CounterRun* fold, int64 from, int64 before) {
    DuePage page;
    for (page.next = from; page.next != 0 && page.next < before;) {
        if (is_late(*fold)) {
            come_again_for_rest(fold);
            return false;
        }
        if (!next_page(fold, page.next, &page) || !fold_page(fold, page.due, before))
            return false;
        if (page.has_passed_over)
            come_again(fold->run, GetCurrentTimestamp() + kRetryFailed);
    }
    return true;
}

static void fold_all(SweepRun* run) {
    CounterRun fold = begin_counter_run(run);
    char message[kErrorBytes] = "";
    int64 start = 1;
    bool is_undecided = false;
    if (!in_transaction(message, [&] {
            start = any_counter();
            is_undecided = has_prepared_parts();
        })) {
        note_failure(run, "escrow", message);
        return;
    }
    if (is_undecided)
        come_again(run, GetCurrentTimestamp() + kRetryLocked);
    if (fold_between(&fold, start, PG_INT64_MAX))
        (void)fold_between(&fold, 1, start);
}

// Whether the journal is there, and no subscription writes it.
static bool has_own_journal(SweepRun* run) {
    char message[kErrorBytes] = "";
    bool found = false;
    if (!in_transaction(message, [&] {
            found =
                has_internal_table("escrow_part") && !is_subscribed(internal_table("escrow_part"));
        }))
        note_failure(run, "escrow", message);
    return found;
}

static void sweep_counters(SweepRun* run, List*) {
    if (!has_own_journal(run))
        return;
    sweep_reservations(run);
    fold_all(run);
}

void fold_column(Relation rel, const EscrowColumn& column, bool skips_gone_rows) {
    DueCounters due = due_of(RelationGetRelid(rel), column, nullptr);
    for (int i = 0; i < due.count; i++) {
        Fold result = fold_counter(rel, &column, due.first[i], true);
        if (result == Fold::kOtherKey)
            raise_key_changed(rel, table_info(rel), column);
        if (result != Fold::kFolded && !(skips_gone_rows && result == Fold::kNoRow))
            ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                            errmsg("could not fold the escrow counters of column \"%s\" of table "
                                   "\"%s\"",
                                   NameStr(column.name), RelationGetRelationName(rel))));
    }
}

static int64 fold_by_hand(Relation rel, const EscrowColumn& column, const text* key) {
    DueCounters due = due_of(RelationGetRelid(rel), column, key);
    int64 folded = 0;
    bool reads_all = may_read_all(rel, GetUserId());
    for (int i = 0; i < due.count; i++) {
        CHECK_FOR_INTERRUPTS();
        auto fold = [&] {
            folded += fold_counter(rel, &column, due.first[i], true) == Fold::kFolded ? 1 : 0;
        };
        if (reads_all)
            fold();
        else
            hiding_row(rel, fold);
    }
    return folded;
}

extern const SweepTask kEscrowSweep = {
    .activity = "folding escrow counters",
    .run = sweep_counters,
};

// The locks of the rows stay with the caller, who may not see the rows.
static void refuse_row_security(Relation rel) {
    if (check_enable_rls(RelationGetRelid(rel), InvalidOid, true) == RLS_ENABLED)
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("row security of table \"%s\" keeps role \"%s\" from folding its "
                               "escrow counters",
                               RelationGetRelationName(rel), GetUserNameFromId(GetUserId(), true)),
                        errhint("The sweeper folds them, or the owner of the table.")));
}

// Raises 55000 for parts that cannot be folded: they would stay without a word.
static void require_foldable(Relation rel, const TableInfo* info, const EscrowColumn& column) {
    if (column.attnum == InvalidAttrNumber)
        raise_column_gone(rel, column);
    if (key_of_counters(info, column) == nullptr)
        raise_key_changed(rel, info, column);
}

extern "C" {
PG_FUNCTION_INFO_V1(fold_escrow);

// fold_escrow(rel, key) -> count
Datum fold_escrow(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    PreventCommandIfReadOnly("interlock.fold_escrow()");
    PreventCommandIfParallelMode("interlock.fold_escrow()");
    Relation rel = open_table(arguments.relation(0), RowExclusiveLock, ACL_UPDATE);
    refuse_row_security(rel);
    const TableInfo* info = table_info(rel);
    bool is_one = !arguments.is_null(1);
    Key key = {};
    if (is_one)
        key = key_argument(arguments, 1, rel, info);
    int64 folded = 0;
    each_escrow(info, [&](const EscrowColumn& column) {
        if (!column.well_formed || column.twin != nullptr)
            return;
        require_foldable(rel, info, column);
        if (is_one) {
            require_key_rights(rel, column);
            require_counter_key(rel, info, column, key);
        }
        const text* values = is_one ? counter_key(info, column, key) : nullptr;
        return_expired_of(rel, column, values);
        folded += fold_by_hand(rel, column, values);
    });
    close_table(rel);
    PG_RETURN_INT64(folded);
}
}

} // namespace interlock::escrow

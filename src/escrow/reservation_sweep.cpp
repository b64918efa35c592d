// One part for all that have expired of a counter, up to a batch, in one transaction.

#include "escrow/reservation_sweep.h"

#include "escrow/counter_run.h"
#include "escrow/reservation.h"
#include "sweeper/sweeper.h"
#include "table/own_table.h"
#include "table/plan.h"

namespace interlock::escrow {

// What they have taken together: of the first ones, where that is more than a part can have.
static int64 add_expired(const EscrowColumn& column, Expired* expired) {
    int64 sum = 0;
    for (int i = 0; i < expired->count; i++) {
        int64 with_this;
        if (pg_add_s64_overflow(sum, amount_of_reservation(column, expired->first[i]),
                                &with_this)) {
            expired->count = i;
            expired->is_all = false;
            break;
        }
        sum = with_this;
    }
    return sum;
}

// False: there are more, some are locked by others, or the counter is.
static bool return_expired(const EscrowCounter& counter, bool wait, int64* count) {
    if (!enter_gate(counter, ShareLock, wait))
        return false;
    Expired expired = lock_expired(counter.id, wait, sweep_batch);
    int64 sum = add_expired(*counter.column, &expired);
    if (expired.count > 0 && !enter_untested(counter, {sum, -sum}, wait))
        return wait; // having waited: there is no such row, to which it could be returned
    delete_expired(expired);
    *count += expired.count;
    return expired.is_all;
}

namespace {

struct DuePage {
    DueCounter* first;
    int count;
    int64 rows;
    TimestampTz last;
};

} // namespace

constexpr int64 kRowsOfPage = 1000;

// Of a query for counters, the counts of their rows and the last deadlines; in the caller's
// context.
static DuePage read_due(const char* query, int count, Oid* types, Datum* values,
                        const char* nulls) {
    MemoryContext context = CurrentMemoryContext;
    DuePage page = {};
    as_owner_of(internal_table(kReservationTable), [&] {
        with_spi([&] {
            if (SPI_execute_with_args(query, count, types, values, nulls, false, 0) !=
                SPI_OK_SELECT)
                elog(ERROR, "could not read expired reservations");
            page.count = static_cast<int>(SPI_processed);
            page.first = static_cast<DueCounter*>(
                MemoryContextAllocHuge(context, sizeof(DueCounter) * (page.count + 1)));
            for (int i = 0; i < page.count; i++) {
                auto column = [&](int n) {
                    bool is_null;
                    return SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, n, &is_null);
                };
                page.first[i] = due_in_row(i, context);
                page.rows += DatumGetInt64(column(5));
                page.last = Max(page.last, DatumGetTimestampTz(column(6)));
            }
        });
    });
    return page;
}

static DuePage read_page(TimestampTz from, TimestampTz until) {
    Oid types[2] = {TIMESTAMPTZOID, TIMESTAMPTZOID};
    Datum values[2] = {TimestampTzGetDatum(from), TimestampTzGetDatum(until)};
    return read_due(
        psprintf("SELECT d.counter, COALESCE(c.rel::pg_catalog.oid, 0::pg_catalog.oid), "
                 "c.column_name, c.key, d.rows, d.last FROM (SELECT r.counter, "
                 "pg_catalog.count(*) AS rows, pg_catalog.max(r.expires_at) AS last FROM (SELECT "
                 "e.counter, e.expires_at FROM interlock_internal.escrow_reservation e WHERE "
                 "e.expires_at OPERATOR(pg_catalog.>=) $1 AND e.expires_at "
                 "OPERATOR(pg_catalog.<=) $2 ORDER BY e.expires_at USING OPERATOR(pg_catalog.<) "
                 "LIMIT " INT64_FORMAT ") r GROUP BY r.counter) d LEFT JOIN "
                 "interlock_internal.escrow_counter c ON c.id OPERATOR(pg_catalog.=) d.counter",
                 kRowsOfPage),
        2, types, values, nullptr);
}

// In the order in which a cart locks its counters, as this waits for their locks, too.
static DuePage read_due_of(Oid rel, const EscrowColumn& column, const text* key) {
    Oid types[4] = {TIMESTAMPTZOID, OIDOID, TEXTOID, NAMEOID};
    Datum values[4] = {TimestampTzGetDatum(GetCurrentTimestamp()), ObjectIdGetDatum(rel),
                       PointerGetDatum(key), NameGetDatum(&column.label)};
    return read_due(
        "SELECT c.id, c.rel::pg_catalog.oid, c.column_name, c.key, "
        "pg_catalog.count(*), pg_catalog.max(r.expires_at) FROM "
        "interlock_internal.escrow_reservation r JOIN "
        "interlock_internal.escrow_counter c ON c.id OPERATOR(pg_catalog.=) r.counter "
        "WHERE r.expires_at OPERATOR(pg_catalog.<=) $1 AND c.rel::pg_catalog.oid "
        "OPERATOR(pg_catalog.=) $2 AND ($3 IS NULL OR c.key OPERATOR(pg_catalog.=) "
        "$3) AND c.column_name OPERATOR(pg_catalog.=) $4 GROUP BY c.id ORDER BY c.key USING "
        "OPERATOR(pg_catalog.<)",
        4, types, values, key != nullptr ? nullptr : "  n ");
}

// The table or the counter was dropped: there is nothing to return it to.
static bool drop_expired(int64 counter, int64* count) {
    Expired expired = lock_expired(counter, false, sweep_batch);
    delete_expired(expired);
    *count += expired.count;
    return expired.is_all;
}

namespace {

// kNotInUse: they are kept, until the column has counters again.
enum class Return : uint8 { kNoTable, kNotInUse, kSome, kAll };

} // namespace

static Return of_done(bool is_all) { return is_all ? Return::kAll : Return::kSome; }

static Return return_in(Relation rel, const DueCounter& due, bool wait, int64* count) {
    const TableInfo* info = table_info(rel);
    const EscrowColumn* column = escrow_of_label(info, NameStr(due.column));
    if (column == nullptr || column->attnum == InvalidAttrNumber)
        return Return::kNotInUse;
    column = usable_escrow(rel, info, column->attnum);
    const EscrowCounter* counter = counter_of_name(rel, info, column, due.id, due.key);
    return of_done(counter == nullptr || return_expired(*counter, wait, count));
}

static Return return_due(const DueCounter& due, int64* count) {
    if (!OidIsValid(due.rel) || !SearchSysCacheExists1(RELOID, ObjectIdGetDatum(due.rel)))
        return of_done(drop_expired(due.id, count));
    if (!ConditionalLockRelationOid(due.rel, RowExclusiveLock))
        return Return::kNoTable;
    Relation rel = try_relation_open(due.rel, NoLock);
    if (rel == nullptr)
        return Return::kNoTable;
    Return result = return_in(rel, due, false, count);
    relation_close(rel, NoLock);
    return result;
}

// The one that the query, of a time or of nothing, returns; DT_NOEND: none.
static TimestampTz read_deadline(const char* query, const TimestampTz* time = nullptr) {
    TimestampTz found = DT_NOEND;
    as_owner_of(internal_table(kReservationTable), [&] {
        with_spi([&] {
            Oid type = TIMESTAMPTZOID;
            Datum value = time != nullptr ? TimestampTzGetDatum(*time) : 0;
            if (SPI_execute_with_args(query, time != nullptr ? 1 : 0, &type, &value, nullptr, true,
                                      1) != SPI_OK_SELECT)
                elog(ERROR, "could not read reservations");
            bool is_null;
            if (SPI_processed > 0)
                found = DatumGetTimestampTz(
                    SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null));
        });
    });
    return found;
}

static TimestampTz next_deadline(TimestampTz now) {
    return read_deadline(
        "SELECT expires_at FROM interlock_internal.escrow_reservation WHERE expires_at "
        "OPERATOR(pg_catalog.>) $1 ORDER BY expires_at USING OPERATOR(pg_catalog.<) LIMIT 1",
        &now);
}

// Where the run begins: at the deadline of any reservation, as tokens are random numbers, so that
// those which cannot be returned, however many, do not keep others from their turn. With the
// oldest if that one has not expired.
static TimestampTz any_expired(TimestampTz now) {
    TimestampTz found = read_deadline(
        "SELECT e.expires_at FROM interlock_internal.escrow_reservation e WHERE e.token "
        "OPERATOR(pg_catalog.>=) (SELECT (pg_catalog.random() OPERATOR(pg_catalog.*) "
        "9223372036854775807::pg_catalog.float8)::pg_catalog.int8) ORDER BY e.token USING "
        "OPERATOR(pg_catalog.<) LIMIT 1");
    return found > now ? DT_NOBEGIN : found;
}

// False: the run's time is over.
static bool return_page(CounterRun* returning, const DuePage& page) {
    SweepRun* run = returning->run;
    for (int i = 0; i < page.count; i++) {
        const DueCounter& due = page.first[i];
        Return result = Return::kSome;
        int64 count = 0;
        Turn turn = run_counter(returning, due.rel, [&] { result = return_due(due, &count); });
        if (turn == Turn::kOver)
            return false;
        if (turn == Turn::kFailed)
            continue;
        run->released += count;
        returning->has_worked = returning->has_worked || count > 0;
        if (result == Return::kNoTable) // once for all of its counters
            leave_out(returning, due.rel);
        if (result == Return::kNoTable || result == Return::kSome)
            come_again(run, count > 0 ? run->start : GetCurrentTimestamp() + kRetryLocked);
    }
    return true;
}

// Of those that have expired between the two. False: the run's time is over, or it has failed.
static bool return_between(CounterRun* returning, TimestampTz from, TimestampTz until) {
    char message[kErrorBytes] = "";
    DuePage page;
    do {
        if (is_late(*returning)) {
            come_again_for_rest(returning);
            return false;
        }
        page = {};
        end_table();
        if (!in_transaction(message, [&] {
                page = in_context(returning->context, [&] { return read_page(from, until); });
            })) {
            note_failure(returning->run, "escrow", message);
            return false;
        }
        if (!return_page(returning, page)) {
            come_again(returning->run, returning->run->start);
            return false;
        }
        from = page.last > from ? page.last : from + 1; // many of the same time wait for their turn
    } while (page.rows == kRowsOfPage);
    return true;
}

void return_expired_of(Relation rel, const EscrowColumn& column, const text* key) {
    int64 count = 0;
    DuePage due = read_due_of(RelationGetRelid(rel), column, key);
    for (int i = 0; i < due.count; i++)
        while (return_in(rel, due.first[i], true, &count) == Return::kSome)
            CHECK_FOR_INTERRUPTS();
}

void sweep_reservations(SweepRun* run) {
    CounterRun returning = begin_counter_run(run);
    char message[kErrorBytes] = "";
    TimestampTz now = GetCurrentTimestamp();
    TimestampTz start = DT_NOEND;
    TimestampTz next = DT_NOEND;
    if (!in_transaction(message, [&] {
            if (!has_internal_table(kReservationTable))
                return;
            start = any_expired(now);
            next = next_deadline(now);
        })) {
        note_failure(run, "escrow", message);
        return;
    }
    if (start == DT_NOEND)
        return;
    come_again(run, next);
    if (return_between(&returning, start, now) && start != DT_NOBEGIN)
        (void)return_between(&returning, DT_NOBEGIN, start - 1);
}

} // namespace interlock::escrow

#include "escrow/reservation.h"

#include "escrow/scan.h"

namespace interlock::escrow {

namespace {

enum Column {
    kToken = 1,
    kCounter,
    kAmount,
    kExpiresAt,
    kReservedAt,
    kRoleName,
    kHolder,
    kRows,
    kColumns = kRows
};

} // namespace

constexpr const char* kByToken = "escrow_reservation_pkey";
constexpr const char* kByCounter = "escrow_reservation_counter";

static Reservation read_row(Relation rel, HeapTuple tuple) {
    return {DatumGetInt64(column_of(rel, tuple, kToken).value),
            DatumGetInt64(column_of(rel, tuple, kCounter).value),
            DatumGetTimestampTz(column_of(rel, tuple, kExpiresAt).value),
            *DatumGetName(column_of(rel, tuple, kRoleName).value),
            DatumGetInt32(column_of(rel, tuple, kRows).value),
            heap_copytuple(tuple)};
}

// visit(rel, tuple, snapshot) for each that has the value in the indexed column. The snapshot keeps
// the rows from being pruned, so that they can be locked by their place.
template <typename Visit>
static void each_reservation(int column, const char* index, int64 value, LOCKMODE mode,
                             Snapshot snapshot, Visit&& visit) {
    ScanKeyData key;
    ScanKeyInit(&key, static_cast<AttrNumber>(column), BTEqualStrategyNumber, F_INT8EQ,
                Int64GetDatum(value));
    with_snapshot(snapshot, [&](Snapshot registered) {
        scan_rows(kReservationTable, index, mode, registered, &key, 1, visit);
    });
}

template <typename Visit>
static void each_of_counter(int64 counter, LOCKMODE mode, Visit&& visit) {
    each_reservation(kCounter, kByCounter, counter, mode, latest_snapshot(), visit);
}

namespace {

enum class Locking : uint8_t { kLocked, kEnded, kChanged, kBusy };

} // namespace

// Puts the newest version into *reservation.
static Locking lock_row(Relation rel, HeapTuple found, bool wait, Reservation* reservation) {
    HeapTupleData tuple = {};
    tuple.t_self = found->t_self;
    Buffer buffer;
    TM_FailureData failure;
    TM_Result result =
        heap_lock_tuple(rel, &tuple, GetCurrentCommandId(true), LockTupleExclusive,
                        wait ? LockWaitBlock : LockWaitSkip, false, &buffer, &failure);
    if (result == TM_Ok)
        *reservation = read_row(rel, &tuple);
    ReleaseBuffer(buffer);
    switch (result) {
    case TM_Ok:
        return Locking::kLocked;
    case TM_Updated:
        return Locking::kChanged;
    case TM_WouldBlock:
        return Locking::kBusy;
    default:
        return Locking::kEnded;
    }
}

static int64 amount_in(const EscrowColumn& column, Relation rel, HeapTuple tuple) {
    return amount_of_numeric(column, column_of(rel, tuple, kAmount).value);
}

static int64 new_token() {
    int64 token = 0;
    while (token <= 0) {
        if (!pg_strong_random(&token, sizeof(token)))
            ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                            errmsg("could not generate the token of a reservation")));
        token &= PG_INT64_MAX;
    }
    return token;
}

bool has_expired(const Reservation& reservation) {
    return reservation.expires_at <= GetCurrentTimestamp();
}

int64 amount_of_reservation(const EscrowColumn& column, const Reservation& reservation) {
    Relation rel = table_open(internal_table(kReservationTable), AccessShareLock);
    int64 amount = amount_in(column, rel, reservation.row);
    table_close(rel, NoLock);
    return amount;
}

static bool has_rows(int64 token) {
    bool found = false;
    each_reservation(kToken, kByToken, token, AccessShareLock, latest_snapshot(),
                     [&](Relation, HeapTuple) {
                         found = true;
                         return false;
                     });
    return found;
}

NewReservation new_reservation(int64 ttl, const text* holder, int32 rows) {
    int64 token = new_token();
    while (has_rows(token))
        token = new_token();
    return {token, GetCurrentTimestamp() + ttl, holder, rows};
}

void insert_reservation(const NewReservation& reservation, const EscrowColumn& column,
                        int64 counter, int64 amount) {
    NameData role;
    namestrcpy(&role, GetUserNameFromId(GetUserId(), false));
    Datum values[kColumns] = {Int64GetDatum(reservation.token),
                              Int64GetDatum(counter),
                              numeric_of(column, amount),
                              TimestampTzGetDatum(reservation.expires_at),
                              TimestampTzGetDatum(GetCurrentTimestamp()),
                              NameGetDatum(&role),
                              PointerGetDatum(reservation.holder),
                              Int32GetDatum(reservation.rows)};
    bool nulls[kColumns] = {};
    nulls[kHolder - 1] = reservation.holder == nullptr;
    Relation rel = table_open(internal_table(kReservationTable), RowExclusiveLock);
    CatalogTupleInsert(rel, heap_form_tuple(RelationGetDescr(rel), values, nulls));
    table_close(rel, NoLock);
    CommandCounterIncrement();
}

Reservations find_reservation(int64 token) {
    Reservations found = {};
    int room = 0;
    each_reservation(kToken, kByToken, token, AccessShareLock, latest_snapshot(),
                     [&](Relation rel, HeapTuple tuple) {
                         append(&found.first, &found.count, &room, read_row(rel, tuple));
                         return true;
                     });
    return found;
}

bool lock_reservation(Reservation* reservation) {
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], kToken, BTEqualStrategyNumber, F_INT8EQ,
                Int64GetDatum(reservation->token));
    ScanKeyInit(&keys[1], kCounter, BTEqualStrategyNumber, F_INT8EQ,
                Int64GetDatum(reservation->counter));
    Locking locking;
    do {
        locking = Locking::kEnded;
        with_snapshot(latest_snapshot(), [&](Snapshot snapshot) {
            scan_rows(kReservationTable, kByToken, RowExclusiveLock, snapshot, keys, 2,
                      [&](Relation rel, HeapTuple tuple) {
                          locking = lock_row(rel, tuple, true, reservation);
                          return false;
                      });
        });
    } while (locking == Locking::kChanged);
    return locking == Locking::kLocked;
}

void delete_reservation(const Reservation& reservation) {
    Relation rel = table_open(internal_table(kReservationTable), RowExclusiveLock);
    CatalogTupleDelete(rel, &reservation.row->t_self);
    table_close(rel, NoLock);
    CommandCounterIncrement();
}

void move_deadline(const Reservation& reservation, TimestampTz expires_at) {
    Relation rel = table_open(internal_table(kReservationTable), RowExclusiveLock);
    int column = kExpiresAt;
    Datum value = TimestampTzGetDatum(expires_at);
    bool is_null = false;
    HeapTuple row = heap_modify_tuple_by_cols(reservation.row, RelationGetDescr(rel), 1, &column,
                                              &value, &is_null);
    CatalogTupleUpdate(rel, &row->t_self, row);
    table_close(rel, NoLock);
    CommandCounterIncrement();
}

Expired lock_expired(int64 counter, bool wait, int most) {
    Expired expired = {nullptr, 0, true};
    int room = 0;
    each_of_counter(counter, RowExclusiveLock, [&](Relation rel, HeapTuple tuple) {
        if (!has_expired(read_row(rel, tuple)))
            return true;
        expired.is_all = expired.is_all && expired.count < most;
        if (expired.count == most)
            return false;
        Reservation reservation;
        switch (lock_row(rel, tuple, wait, &reservation)) {
        case Locking::kLocked:
            if (has_expired(reservation))
                append(&expired.first, &expired.count, &room, reservation);
            break;
        case Locking::kBusy:
            expired.is_all = false;
            break;
        default: // ended, or extended
            break;
        }
        return true;
    });
    return expired;
}

void end_expired(const EscrowColumn& column, int64 counter, AmountSum* sum) {
    Expired expired = lock_expired(counter, true, PG_INT32_MAX);
    for (int i = 0; i < expired.count; i++)
        sum->add(amount_of_reservation(column, expired.first[i]));
    delete_expired(expired);
}

void delete_expired(const Expired& expired) {
    for (int i = 0; i < expired.count; i++)
        delete_reservation(expired.first[i]);
}

void forget_expired(const int64* counters, int count) {
    for (int i = 0; i < count; i++)
        delete_expired(lock_expired(counters[i], true, PG_INT32_MAX));
}

void add_reservations(const EscrowColumn& column, int64 counter, Snapshot snapshot,
                      AmountSum* sum) {
    each_reservation(kCounter, kByCounter, counter, AccessShareLock, snapshot,
                     [&](Relation rel, HeapTuple tuple) {
                         sum->add(amount_in(column, rel, tuple));
                         return true;
                     });
}

AmountSum sum_of_reservations(const EscrowColumn& column, int64 counter) {
    AmountSum sum = {};
    add_reservations(column, counter, latest_snapshot(), &sum);
    return sum;
}

static int64 count_reservations(int64 counter, int64 most) {
    int64 count = 0;
    each_of_counter(counter, AccessShareLock, [&](Relation, HeapTuple) { return ++count < most; });
    return count;
}

bool has_reservations(int64 counter) { return count_reservations(counter, 1) > 0; }

void refuse_reservations(Relation rel, const EscrowColumn& column, const int64* counters,
                         int count) {
    int64 live = 0;
    for (int i = 0; i < count; i++)
        live += count_reservations(counters[i], PG_INT64_MAX);
    if (live > 0)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg_plural("column \"%s\" of table \"%s\" has " INT64_FORMAT " reservation",
                               "column \"%s\" of table \"%s\" has " INT64_FORMAT " reservations",
                               live, NameStr(column.name), RelationGetRelationName(rel), live),
                 errhint("Confirm or cancel them, or wait until they have expired. View "
                         "interlock.reservations shows them.")));
}

} // namespace interlock::escrow

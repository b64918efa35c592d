// Reservations: what was taken from counters until a deadline (E14). A row of
// interlock_internal.escrow_reservation is one counter of a reservation; a cart has several rows of
// one token and one deadline. Only the DELETE of a row ends it. The same transaction inserts the
// part that belongs to the row.
//
// The sweeper ends each row of an expired cart separately. Each row stores how many rows the cart
// had. If one row of a cart has ended, the cart cannot be confirmed any more.
//
// A transaction locks the row before it deletes the row. It reads the clock after the lock: past
// the deadline the reservation has expired, whether it was swept or not. After the lock and before
// the DELETE, the transaction loads everything else that it needs into memory. A transaction that
// has deleted a reservation and not yet inserted its part must not load a counter's entry into
// memory.
//
// The rows are written without statements, for callers who have no privilege on the table. They are
// read without the transaction's snapshot.
#pragma once

#include "escrow/escrow.h"

namespace interlock::escrow {

constexpr const char* kReservationTable = "escrow_reservation";

struct Reservation {
    int64 token;
    int64 counter;
    TimestampTz expires_at;
    NameData role; // that has made it
    int32 rows;    // of its token
    HeapTuple row; // a copy
};

struct Reservations {
    Reservation* first;
    int count;
};

// What the rows of one token have in common.
struct NewReservation {
    int64 token;
    TimestampTz expires_at;
    const text* holder; // may be null
    int32 rows;
};

bool has_expired(const Reservation& reservation); // by the clock
int64 amount_of_reservation(const EscrowColumn& column, const Reservation& reservation);

// Makes a token that no one can guess. The deadline is `ttl` from now.
NewReservation new_reservation(int64 ttl, const text* holder, int32 rows);

// A row of it, for the current user.
void insert_reservation(const NewReservation& reservation, const EscrowColumn& column,
                        int64 counter, int64 amount);

// All rows of the token.
Reservations find_reservation(int64 token);
// Waits for other transactions that end or extend that row. False: it has ended.
bool lock_reservation(Reservation* reservation);
// The row must be locked.
void delete_reservation(const Reservation& reservation);
void move_deadline(const Reservation& reservation, TimestampTz expires_at);

// The expired reservations of a counter, locked.
struct Expired {
    Reservation* first;
    int count;
    bool is_all; // false: there are more, or others have locked some
};
Expired lock_expired(int64 counter, bool wait, int most);
// Deletes all expired reservations, and adds their amounts to the sum. The caller holds the
// exclusive gate.
void end_expired(const EscrowColumn& column, int64 counter, AmountSum* sum);
void delete_expired(const Expired& expired);
// Deletes the expired reservations of these counters without returning their amounts.
void forget_expired(const int64* counters, int count);

void add_reservations(const EscrowColumn& column, int64 counter, Snapshot snapshot, AmountSum* sum);
AmountSum sum_of_reservations(const EscrowColumn& column, int64 counter); // without a snapshot
bool has_reservations(int64 counter);

// Raises 55000 if there are reservations of the column's counters, or of one counter. To be called
// under a lock that excludes new reservations, after the expired ones have ended. A reservation
// that expires meanwhile counts as held.
void refuse_reservations(Relation rel, const EscrowColumn& column, const int64* counters,
                         int count);

} // namespace interlock::escrow

// Reservations: what was taken from counters until a deadline (E14). A row of
// interlock_internal.escrow_reservation is one counter of a reservation; a cart has several rows of
// one token and one deadline. The DELETE of a row ends it, and nothing else does; the part that
// goes with it is of the same transaction.
//
// The sweeper ends the rows of an expired cart each for itself. So a cart is lost as soon as one of
// its rows is: each row says how many there are.
//
// A row is deleted by who has locked it, and the clock is read after the lock: past the deadline
// the reservation has expired, swept or not. What else the transaction needs of memory comes
// between the lock and the DELETE: an entry is not loaded by a transaction that has deleted a
// reservation and not inserted its part yet.
//
// The rows are written without statements, for callers who have no privilege on the table. Reads
// are as of now, whatever the snapshot of the transaction is.
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

// With a token that no one can guess, and the deadline, which begins now.
NewReservation new_reservation(int64 ttl, const text* holder, int32 rows);

// A row of it, for the current user.
void insert_reservation(const NewReservation& reservation, const EscrowColumn& column,
                        int64 counter, int64 amount);

// All rows of the token.
Reservations find_reservation(int64 token);
// Waits for other transactions that end or extend that row. False: it has ended.
bool lock_reservation(Reservation* reservation);
// Of a row that is locked.
void delete_reservation(const Reservation& reservation);
void move_deadline(const Reservation& reservation, TimestampTz expires_at);

// The expired ones of a counter, locked.
struct Expired {
    Reservation* first;
    int count;
    bool is_all; // false: there are more, or some are locked by others
};
Expired lock_expired(int64 counter, bool wait, int most);
// Deletes them all, and adds what they have taken. Under the exclusive gate.
void end_expired(const EscrowColumn& column, int64 counter, AmountSum* sum);
void delete_expired(const Expired& expired);
// Of those counters: nothing gets back what they have taken.
void forget_expired(const int64* counters, int count);

void add_reservations(const EscrowColumn& column, int64 counter, Snapshot snapshot, AmountSum* sum);
AmountSum sum_of_reservations(const EscrowColumn& column, int64 counter); // as of now
bool has_reservations(int64 counter);

// Raises 55000 when there are reservations: of the counters of a column, or of one of them. Under
// what excludes new ones, after the expired ones have been ended; one that expires since is held.
void refuse_reservations(Relation rel, const EscrowColumn& column, const int64* counters,
                         int count);

} // namespace interlock::escrow

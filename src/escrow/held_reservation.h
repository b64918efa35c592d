// A reservation that a call ends or extends: its rows are locked.
#pragma once

#include "escrow/change.h"
#include "escrow/reservation.h"

namespace interlock::escrow {

// Who may end a reservation: members of the role that has made it; and to cancel it, who owns all
// of its tables.
enum class Right : uint8_t { kRole, kRoleOrOwner };

struct HeldRow {
    Reservation reservation;
    Oid table;
    NameData label;
    text* key;
    Relation rel;
    EscrowCounter* counter; // null: the column has no counters any more
};

// Rows whose table or counter is gone are left out.
struct Held {
    HeldRow* rows;
    int count;
    bool is_live; // it has not expired, and all of its rows are there, with counters
};

// Locks the rows, enters the gates of their counters, and opens their tables. The clock is read
// after the last lock. Null: there is none with that token, or it is not the caller's, who must not
// be able to distinguish the two; or a row has ended.
Held* hold_reservation(int64 token, Right right);
void close_held(const Held* held);

} // namespace interlock::escrow

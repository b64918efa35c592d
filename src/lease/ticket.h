// Tickets: callers that were refused a lease, and are to be notified when it can be had. They hold
// no connection and no place in a queue; nothing depends on a ticket but a notification.
//
// A partition has one list of the tickets for all of its keys, in the order of asking.
#pragma once

#include "lease/table.h"

namespace interlock {

struct LeaseTicket {
    int64 number;   // what the notification says
    int64 asked;    // the last time
    int64 notified; // 0: not since then
    Ref node;
    Ref next;
    Oid role;
    LeaseMode mode;
    bool is_sure; // the notification was sent by a transaction of its own
    uint8 holder_length;
    LeaseCharge charge;

    // Of holder_length bytes, at the end of the same piece of memory.
    void copy_holder(char* to) const { read_text(this, sizeof(LeaseTicket), to, holder_length); }
    bool has_holder(std::string_view holder) const {
        return holder_length == holder.size() &&
               is_text(this, sizeof(LeaseTicket), holder.data(), holder.size());
    }
};

inline LeaseTicket* ticket_at(Ref ref) { return at<LeaseTicket>(ref); }

// Whose ticket it is: a role has one for each holder, key and mode.
struct TicketOwner {
    Oid role;
    LeaseMode mode;
    std::string_view holder;
};

// All with the partition's lock held exclusively, or shared where a function only looks.

// The link to the owner's ticket for the key; null: there is none.
Ref* find_ticket(const LeaseKey& key, const TicketOwner& owner);

// Appends a new ticket; kYes: `made` is it.
LeaseRoom make_ticket(const LeaseKey& key, const TicketOwner& owner, LeaseAccess access, Ref* made);

// Drops the ticket that the link leads to; the link then leads to the next one.
void drop_ticket(Ref* link);

void drop_tickets_of(int partition, Oid database);

} // namespace interlock

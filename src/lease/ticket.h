// Tickets: callers that were refused a lease, and are to be notified when it can be had. They hold
// no connection and no place in a queue; nothing depends on a ticket but a notification.
//
// A partition has one list of the tickets for all of its keys, in the order of asking.
#pragma once

#include "lease/lease_table.h"

namespace interlock::lease {

struct LeaseTicket {
    int64 number;   // what the notification says
    int64 asked;    // the last time
    int64 notified; // 0: not since then
    Ref node;
    Ref next;
    Oid role;
    int32 pid;      // the session that it ends with; 0: none
    int32 capacity; // of a permit
    LeaseMode mode;
    bool is_open; // others may have the lease first, also right after the ticket is notified
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

// Drops the tickets for which is_wanted(const LeaseTicket&). Returns how many they were.
template <typename Wanted>
int64 drop_tickets_if(int partition, Wanted&& is_wanted);

// After a grant at the key: those who have asked for it, or above or below, have their order again.
void note_grant_for_tickets(int partition, Ref node);

template <typename Wanted>
int64 drop_tickets_if(int partition, Wanted&& is_wanted) {
    int64 count = 0;
    for (Ref* link = first_ticket(partition); *link != 0;)
        if (is_wanted(*ticket_at(*link))) {
            drop_ticket(link);
            count++;
        } else {
            link = &ticket_at(*link)->next;
        }
    return count;
}

} // namespace interlock::lease

// Tickets: callers that were refused a lease and will be notified when it can be acquired. They
// hold no connection and no place in a queue. A ticket only leads to a notification.
//
// A partition has one list of tickets for all of its keys, in the order of the requests.
#pragma once

#include "lease/lease_table.h"

namespace interlock::lease {

// How long a lease is kept for the owner of a ticket who was notified, and how long a ticket lasts
// from the last request of its owner.
constexpr int64 kTicketPatience = USECS_PER_SEC;
constexpr int64 kTicketLife = 3600 * USECS_PER_SEC;

struct LeaseTicket {
    int64 number;   // the number in the notification
    int64 asked;    // time of the last request
    int64 notified; // 0: not since the last request
    Ref node;
    Ref next;
    Oid role;
    int32 pid;      // the session with which it ends; 0: none
    int32 capacity; // of a permit
    LeaseMode mode;
    bool is_open; // others may acquire the lease first, even after the notification
    uint8 holder_length;
    LeaseCharge charge;

    // Copies holder_length bytes at the end of the same piece of memory.
    void copy_holder(char* to) const { read_text(this, sizeof(LeaseTicket), to, holder_length); }
    bool has_holder(std::string_view holder) const {
        return holder_length == holder.size() &&
               is_text(this, sizeof(LeaseTicket), holder.data(), holder.size());
    }
};

inline LeaseTicket* ticket_at(Ref ref) { return at<LeaseTicket>(ref); }

// The owner of a ticket. A role has one ticket for each holder, key and mode.
struct TicketOwner {
    Oid role;
    LeaseMode mode;
    std::string_view holder;
};

// For all functions below the partition's lock must be held: exclusively, or shared if the function
// only reads.

// The link to the owner's ticket for the key. Null: there is none.
Ref* find_ticket(const LeaseKey& key, const TicketOwner& owner);

// Appends a new ticket. If the result is kYes, *made is the ticket.
LeaseRoom make_ticket(const LeaseKey& key, const TicketOwner& owner, LeaseAccess access, Ref* made);

// Drops the ticket at the link. The link then leads to the next ticket.
void drop_ticket(Ref* link);

// Drops the tickets for which is_wanted(const LeaseTicket&) is true. Returns their number.
template <typename Wanted>
int64 drop_tickets_if(int partition, Wanted&& is_wanted);

// To be called after a grant at the key. Tickets for this key, and for keys above or below it, have
// their order again.
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

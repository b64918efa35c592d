#include "lease/ticket.h"

namespace interlock::lease {

static size_t size_of_ticket(size_t holder_length) { return sizeof(LeaseTicket) + holder_length; }

// A little more than it takes: what a lease of the same key and holder takes.
static uint32 units_of_ticket(const LeaseKey& key, const TicketOwner& owner) {
    return units_of_lease(key, owner.holder.size());
}

static bool is_of(const LeaseTicket& ticket, const TicketOwner& owner) {
    return ticket.role == owner.role && ticket.mode == owner.mode &&
           ticket.has_holder(owner.holder);
}

static Ref* end_of(Ref* link) {
    while (*link != 0)
        link = &ticket_at(*link)->next;
    return link;
}

Ref* find_ticket(const LeaseKey& key, const TicketOwner& owner) {
    Ref node = find_node(key);
    if (node == 0)
        return nullptr;
    Ref* link = first_ticket(key.partition);
    while (*link != 0 && !(ticket_at(*link)->node == node && is_of(*ticket_at(*link), owner)))
        link = &ticket_at(*link)->next;
    return *link == 0 ? nullptr : link;
}

LeaseRoom make_ticket(const LeaseKey& key, const TicketOwner& owner, LeaseAccess access,
                      Ref* made) {
    LeaseCharge charge;
    if (!charge_lease(owner.role, units_of_ticket(key, owner), access, &charge))
        return LeaseRoom::kRoleIsFull;
    Ref node = use_node(key, access);
    Ref ref = node == 0 ? 0 : allocate_piece(size_of_ticket(owner.holder.size()), access);
    if (ref == 0) {
        if (node != 0)
            release_node(node);
        discharge_lease(charge);
        return LeaseRoom::kFull;
    }
    LeaseTicket* ticket = ticket_at(ref);
    *ticket = {};
    ticket->number = next_ticket_number();
    ticket->node = node;
    ticket->role = owner.role;
    ticket->mode = owner.mode;
    ticket->charge = charge;
    ticket->holder_length = static_cast<uint8>(owner.holder.size());
    write_text(ticket, sizeof(LeaseTicket), owner.holder.data(), owner.holder.size());
    *end_of(first_ticket(key.partition)) = ref;
    node_at(root_of(node))->had_tickets = 1;
    *made = ref;
    return LeaseRoom::kYes;
}

void drop_ticket(Ref* link) {
    Ref ref = *link;
    LeaseTicket* ticket = ticket_at(ref);
    *link = ticket->next;
    discharge_lease(ticket->charge);
    release_node(ticket->node);
    free_piece(ref, size_of_ticket(ticket->holder_length));
}

void note_grant_for_tickets(int partition, Ref node) {
    for (Ref ref = *first_ticket(partition); ref != 0; ref = ticket_at(ref)->next) {
        LeaseTicket* ticket = ticket_at(ref);
        if (is_at_or_above(node, ticket->node) || is_at_or_above(ticket->node, node))
            ticket->is_open = ticket->notified != 0;
    }
}

} // namespace interlock::lease

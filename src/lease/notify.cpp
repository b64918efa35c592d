#include "lease/notify.h"

#include "lease/lease.h"
#include "lease/ticket.h"
#include "server/caller.h"
#include "server/notify.h"
#include "sweeper/deadline.h"

namespace interlock::lease {

constexpr const char* kChannel = "interlock_lease";

static TicketOwner owner_of(const LeaseRequest& request) {
    return {request.role, request.mode, {request.holder, request.holder_length}};
}

static bool has_missed(const LeaseTicket& ticket, int64 now) {
    return ticket.notified != 0 && now >= ticket.notified + kTicketPatience;
}

// Whether the lease is kept for the owner, who was just notified.
static bool is_awaited(const LeaseTicket& ticket, int64 now) {
    return ticket.notified != 0 && !ticket.is_open && !has_missed(ticket, now);
}

// --- Whether the lease can be had ----------------------------------------------------------------

// Until when it certainly cannot; 0: it can.
static int64 blocked_until(LeaseDatabase* database, const LeaseTicket& ticket, int64 now) {
    if (is_in_grace(database, now))
        return read_counter(&database->serves_from);
    Ref found = in_the_way_of(database, ticket.node, kind_of(ticket.mode), now);
    if (found == 0 && ticket.mode == LeaseMode::kPermit)
        found = permit_in_the_way(database, ticket.node, ticket.capacity, now);
    if (found == 0)
        return 0;
    const Lease& lease = *lease_at(found);
    if (is_live(lease, now))
        return lease.expires;
    return lease.pins > 0 ? kNeverExpires : 0; // else its record is cleared by who acquires it
}

static bool is_at_or_below(const char* key, size_t length, const char* above, size_t above_length) {
    return above_length <= length && memcmp(key, above, above_length) == 0 &&
           (above_length == length || key[above_length] == '/');
}

static bool excludes(const LeaseTicket& ticket, const LeaseRequest& request) {
    if (ticket.mode == LeaseMode::kShared && request.mode == LeaseMode::kShared)
        return false;
    const LeaseNode& node = *node_at(ticket.node);
    KeyRoom room;
    const char* key = key_bytes(node, room);
    return node.database == request.key.database &&
           (is_at_or_below(key, node.length, request.key.bytes, request.key.length) ||
            is_at_or_below(request.key.bytes, request.key.length, key, node.length));
}

// The ticket of another caller for whom the lease is kept.
static const LeaseTicket* ticket_before(const LeaseRequest& request, int64 now) {
    Ref* own = find_ticket(request.key, owner_of(request));
    for (Ref ref = *first_ticket(request.key.partition); ref != 0; ref = ticket_at(ref)->next) {
        const LeaseTicket& ticket = *ticket_at(ref);
        if ((own == nullptr || ref != *own) && is_awaited(ticket, now) && excludes(ticket, request))
            return &ticket;
    }
    return nullptr;
}

static bool yields(const LeaseRequest& request, LeaseAnswer* answer) {
    LWLockAcquire(partition_lock(request.key.partition), LW_SHARED);
    const LeaseTicket* before = ticket_before(request, monotonic_now());
    if (before != nullptr) {
        answer->outcome = LeaseOutcome::kHeld;
        answer->token = 0;
        answer->expires = before->notified + kTicketPatience;
        before->copy_holder(answer->holder);
        answer->holder[before->holder_length] = '\0';
    }
    LWLockRelease(partition_lock(request.key.partition));
    return before != nullptr;
}

// --- Asking --------------------------------------------------------------------------------------

static void wake_sweeper_at(int64 moment) {
    if (moment != kNeverExpires)
        report_deadline_now(shown_time(moment));
}

namespace {

struct Asked {
    LeaseRoom room;
    int64 number;
    int64 until; // 0: the lease can be had meanwhile
};

} // namespace

// The tickets that this session has asked for to end with it are in these partitions.
static uint64 bound_partitions = 0;

static void end_bound_tickets(int, Datum) {
    auto is_bound = [](const LeaseTicket& ticket) { return ticket.pid == MyProcPid; };
    int64 count = 0;
    for (int i = 0; i < kLeasePartitions; i++) {
        if ((bound_partitions >> i & 1) == 0)
            continue;
        LWLockAcquire(partition_lock(i), LW_EXCLUSIVE);
        count += drop_tickets_if(i, is_bound);
        LWLockRelease(partition_lock(i));
    }
    if (count > 0)
        wake_sweeper_at(monotonic_now());
}

static void prepare_to_bind_ticket(int partition) {
    static bool registered = false;
    if (!registered)
        before_shmem_exit(end_bound_tickets, 0);
    registered = true;
    bound_partitions |= UINT64CONST(1) << partition;
}

// Sessions that wait are served first.
static bool is_behind_waiters(const LeaseTicket& ticket, int partition) {
    if (!has_queue(ticket.node))
        return false;
    uint32 look = next_look(partition);
    pass_over_waiters(partition, look);
    return is_behind(ticket.node, ticket.mode, look);
}

// A ticket that is there keeps its place.
static Asked take_ticket(LeaseDatabase* database, const LeaseRequest& request, LeaseAccess access) {
    int64 now = monotonic_now();
    Ref ref = 0;
    Ref* link = find_ticket(request.key, owner_of(request));
    if (link != nullptr) {
        ref = *link;
    } else {
        LeaseRoom room = make_ticket(request.key, owner_of(request), access, &ref);
        if (room != LeaseRoom::kYes)
            return {room, 0, 0};
    }
    LeaseTicket* ticket = ticket_at(ref);
    ticket->capacity = request.capacity;
    ticket->asked = now;
    ticket->notified = 0;
    ticket->is_open = false;
    ticket->pid = request.bond == LeaseBond::kSession ? MyProcPid : 0;
    int64 until = blocked_until(database, *ticket, now);
    const LeaseTicket* before = until == 0 ? ticket_before(request, now) : nullptr;
    if (before != nullptr)
        until = before->notified + kTicketPatience;
    if (until == 0 && is_behind_waiters(*ticket, request.key.partition))
        until = now + kTicketPatience;
    return {LeaseRoom::kYes, ticket->number, until};
}

static Asked ask(LeaseDatabase* database, const LeaseRequest& request) {
    LWLock* lock = partition_lock(request.key.partition);
    if (request.bond == LeaseBond::kSession)
        prepare_to_bind_ticket(request.key.partition);
    for (RoomSearch search;;) {
        LWLockAcquire(lock, LW_EXCLUSIVE);
        Asked asked = take_ticket(database, request, search.access);
        LWLockRelease(lock);
        if (asked.room == LeaseRoom::kYes)
            return asked;
        find_room(database, asked.room, request.role, &search);
    }
}

// The first of the holder's tickets for the key, of any role, with a higher number; 0: none.
static HeldToken ticket_after(const LeaseKey& key, std::string_view holder, int64 number) {
    HeldToken found = {0, InvalidOid};
    LWLockAcquire(partition_lock(key.partition), LW_SHARED);
    Ref node = find_node(key);
    for (Ref ref = node == 0 ? 0 : *first_ticket(key.partition); ref != 0 && found.token == 0;
         ref = ticket_at(ref)->next) {
        const LeaseTicket& ticket = *ticket_at(ref);
        if (ticket.node == node && ticket.number > number && ticket.has_holder(holder))
            found = {ticket.number, ticket.role};
    }
    LWLockRelease(partition_lock(key.partition));
    return found;
}

// A permit leaves others free, which the next owners of tickets can have.
static void give_back_ticket(const LeaseRequest& request) {
    LWLockAcquire(partition_lock(request.key.partition), LW_EXCLUSIVE);
    Ref* link = find_ticket(request.key, owner_of(request));
    bool is_next_due = link != nullptr && request.mode == LeaseMode::kPermit;
    if (link != nullptr)
        drop_ticket(link);
    LWLockRelease(partition_lock(request.key.partition));
    if (is_next_due)
        notify_at_commit(request.key.partition);
}

// --- Notifying -----------------------------------------------------------------------------------

namespace {

// Of one look at the tickets of a partition: whom to notify, and when to look again.
struct Turn {
    int partition;
    int64 numbers[64];
    int count;
    int64 next;
};

} // namespace

static void choose(Turn* turn, LeaseTicket* ticket, int64 now) {
    turn->numbers[turn->count++] = ticket->number;
    ticket->notified = now;
}

// The lease that was kept for somebody who has not come is open to all behind, until it is granted.
static void open_behind_missed(int partition, int64 now) {
    uint32 look = next_look(partition);
    bool any = false;
    for (Ref ref = *first_ticket(partition); ref != 0; ref = ticket_at(ref)->next) {
        LeaseTicket* ticket = ticket_at(ref);
        if (any && is_behind(ticket->node, ticket->mode, look))
            ticket->is_open = true;
        if (ticket->is_open || !has_missed(*ticket, now))
            continue;
        pass_over(ticket->node, ticket->mode, look);
        any = true;
    }
}

// Whether the ticket stays. One that was notified and has not come is over.
static bool take_turn(LeaseDatabase* database, LeaseTicket* ticket, uint32 look, Turn* turn,
                      int64 now) {
    if (now >= ticket->asked + kTicketLife || has_missed(*ticket, now))
        return false;
    turn->next = Min(turn->next, ticket->asked + kTicketLife);
    if (ticket->notified != 0) {
        turn->next = Min(turn->next, ticket->notified + kTicketPatience);
    } else if (!is_behind(ticket->node, ticket->mode, look)) {
        int64 until = blocked_until(database, *ticket, now);
        if (until == 0)
            choose(turn, ticket, now);
        turn->next = Min(turn->next, until == 0 ? now + kTicketPatience : until);
        if (until == 0 && ticket->is_open)
            return true; // and so are those behind: they are notified, too
    } else if (has_queue(ticket->node)) {
        turn->next =
            Min(turn->next, now + kTicketPatience); // nobody reports that a waiter has left
    }
    pass_over(ticket->node, ticket->mode, look);
    return true;
}

// Under the partition's lock for a moment only, however many tickets there are to notify.
static Turn look_at_tickets(LeaseDatabase* database, int partition) {
    Turn turn = {};
    turn.partition = partition;
    turn.next = kNeverExpires;
    LWLockAcquire(partition_lock(partition), LW_EXCLUSIVE);
    int64 now = monotonic_now();
    open_behind_missed(partition, now);
    uint32 look = next_look(partition);
    pass_over_waiters(partition, look);
    Ref* link = first_ticket(partition);
    while (*link != 0 && turn.count < static_cast<int>(lengthof(turn.numbers))) {
        LeaseTicket* ticket = ticket_at(*link);
        if (node_at(ticket->node)->database != database->database ||
            take_turn(database, ticket, look, &turn, now))
            link = &ticket->next;
        else
            drop_ticket(link);
    }
    if (*link != 0)
        turn.next = now;
    LWLockRelease(partition_lock(partition));
    return turn;
}

static void send(const Turn& turn) {
    for (int i = 0; i < turn.count; i++)
        Async_Notify(kChannel, psprintf(INT64_FORMAT, turn.numbers[i]));
}

static bool can_notify_here() {
    return !IsTransactionBlock() && !IsSubTransaction() && has_room_for_notifications(0.5);
}

// Null: its leases were not used since the start.
static LeaseDatabase* used_database() {
    LeaseDatabase* database;
    for (int i = 0; (database = lease_database_number(i)) != nullptr; i++)
        if (database->database == MyDatabaseId && database->loaded)
            return database;
    return nullptr;
}

// They are chosen again by the next look.
static void note_unsent(const Turn& turn) {
    LWLockAcquire(partition_lock(turn.partition), LW_EXCLUSIVE);
    for (Ref ref = *first_ticket(turn.partition); ref != 0; ref = ticket_at(ref)->next)
        for (int i = 0; i < turn.count; i++)
            if (ticket_at(ref)->number == turn.numbers[i])
                ticket_at(ref)->notified = 0;
    LWLockRelease(partition_lock(turn.partition));
}

// Whether more are due, else when to look again.
static bool notify_some(SweepRun* run, LeaseDatabase* database, int partition, int64* next) {
    Turn turn = look_at_tickets(database, partition);
    *next = turn.next;
    char message[kErrorBytes];
    if (turn.count > 0 && !in_transaction(message, [&] { send(turn); })) {
        note_unsent(turn);
        note_failure(run, "notifications of leases", message);
        return false;
    }
    return turn.count > 0 && turn.next <= monotonic_now();
}

static void run_ticket_task(SweepRun* run, List*) {
    constexpr int kLooks = 8; // of a partition, in one run
    LeaseDatabase* database = used_database();
    if (database == nullptr)
        return;
    for (int i = 0; i < kLeasePartitions; i++) {
        if (*first_ticket(i) == 0)
            continue;
        if (!has_room_for_notifications(0.9)) {
            come_again(run, shown_time(monotonic_now() + kTicketPatience));
            return;
        }
        int64 next = kNeverExpires;
        for (int look = 0; look < kLooks && notify_some(run, database, i, &next); look++)
            CHECK_FOR_INTERRUPTS();
        if (next != kNeverExpires)
            come_again(run, shown_time(next));
    }
}

const SweepTask kTicketTask = {.activity = "notifying callers that wait for leases",
                               .run = run_ticket_task};

// --- Notifying at the commit of a statement ------------------------------------------------------

// The partitions whose tickets this transaction looks at when it commits, and what it then sends.
static uint64 due_partitions = 0;
static List* sent_turns = NIL;

static List* due_turns(LeaseDatabase* database) {
    List* turns = NIL;
    for (int i = 0; i < kLeasePartitions; i++) {
        if ((due_partitions >> i & 1) == 0)
            continue;
        auto* turn = static_cast<Turn*>(palloc(sizeof(Turn)));
        *turn = look_at_tickets(database, i);
        turns = lappend(turns, turn);
    }
    return turns;
}

static void notify_at_end(XactEvent event, void*) {
    if (due_partitions == 0)
        return;
    ListCell* cell;
    switch (event) {
    case XACT_EVENT_PRE_COMMIT:
        sent_turns = in_context(TopTransactionContext, [] { return due_turns(used_database()); });
        foreach (cell, sent_turns) {
            send(*static_cast<Turn*>(lfirst(cell)));
            wake_sweeper_at(static_cast<Turn*>(lfirst(cell))->next);
        }
        return;
    case XACT_EVENT_ABORT:
        foreach (cell, sent_turns)
            note_unsent(*static_cast<Turn*>(lfirst(cell)));
        wake_sweeper_at(monotonic_now());
        [[fallthrough]];
    case XACT_EVENT_COMMIT:
        due_partitions = 0;
        sent_turns = NIL;
        return;
    default:
        return;
    }
}

void notify_at_commit(int partition) {
    if (!can_notify_here()) {
        wake_sweeper_at(monotonic_now());
        return;
    }
    static bool registered = false;
    if (!registered)
        RegisterXactCallback(notify_at_end, nullptr);
    registered = true;
    due_partitions |= UINT64CONST(1) << partition;
    wake_sweeper_at(monotonic_now() + kTicketPatience); // of a statement that takes longer
}

bool withdraw_tickets(const LeaseKey& key, std::string_view holder) {
    bool is_withdrawn = false;
    HeldToken found = {0, InvalidOid};
    while ((found = ticket_after(key, holder, found.token)).token != 0) {
        CHECK_FOR_INTERRUPTS();
        if (!acts_for(found.role))
            continue;
        LWLockAcquire(partition_lock(key.partition), LW_EXCLUSIVE);
        auto is_found = [&](const LeaseTicket& ticket) { return ticket.number == found.token; };
        is_withdrawn = drop_tickets_if(key.partition, is_found) > 0 || is_withdrawn;
        LWLockRelease(partition_lock(key.partition));
    }
    if (is_withdrawn)
        notify_at_commit(key.partition);
    return is_withdrawn;
}

LeaseAnswer acquire_or_ask(LeaseDatabase* database, const LeaseRequest& request,
                           const Deadline& deadline, int64* ticket) {
    *ticket = 0;
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        LeaseAnswer answer;
        bool is_resumed = request.resumes && resume_lease_for(database, request, &answer);
        if (!is_resumed && !(deadline.has_passed() && yields(request, &answer)))
            answer = request.resumes ? resume_or_acquire(database, request, deadline)
                                     : acquire_lease_for(database, request, deadline);
        if (answer.token != 0) {
            give_back_ticket(request);
            return answer;
        }
        Asked asked = ask(database, request);
        if (asked.until != 0) {
            *ticket = asked.number;
            wake_sweeper_at(Min(asked.until, monotonic_now() + kTicketLife));
            return answer;
        }
    }
}

} // namespace interlock::lease

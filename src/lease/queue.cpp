#include "lease/queue.h"

#include "sweeper/deadline.h"

namespace interlock::lease {

// A waiter behind another for the same key wakes up a little later than that one, in case it is
// paused.
constexpr int64 kLater = 10000;

static LeaseWaiter* waiters = nullptr;

static int number_of(const LeaseWaiter* waiter) { return static_cast<int>(waiter - waiters) + 1; }

static LeaseMode mode_of(const LeaseClaim& claim) { return lease_at(claim.lease)->mode; }

// --- Earlier waiters -----------------------------------------------------------------------------

static void note(uint32* seen, bool* seen_exclusive, uint32 look, bool exclusive) {
    *seen_exclusive = exclusive || (*seen == look && *seen_exclusive);
    *seen = look;
}

// A waiter that sleeps longer than that must be woken.
static void wake_by(LeaseWaiter* waiter, int64 moment, int64 now, bool is_asking) {
    bool earlier = moment < waiter->wake_at;
    if (earlier || waiter->wake_at <= now)
        waiter->wake_at = moment;
    if (earlier && !is_asking)
        SetLatch(waiter->latch);
}

// Whether the lease may be the waiter's own: of its session, its transaction or its holder.
static bool may_be_own(const LeaseWaiter& waiter, const Lease& lease) {
    const Lease& wanted = *lease_at(waiter.claim.lease);
    return lease.pid == waiter.pid || (waiter.has_pins && lease.pins > 0) ||
           (waiter.resumes && lease.role == wanted.role && lease.mode == wanted.mode &&
            lease.holder_length == wanted.holder_length);
}

// Wakes a waiter that may wait for itself from now on. It is not woken for the same lease again, as
// waiters that are awake look at each other.
static void note_in_the_way(LeaseWaiter* waiter, Ref ref, bool is_asking) {
    int64 token = ref == 0 ? 0 : lease_at(ref)->token;
    if (token != waiter->seen && ref != 0 && !is_asking && may_be_own(*waiter, *lease_at(ref)))
        SetLatch(waiter->latch);
    waiter->seen = token;
}

static void note_end_for_tickets() {
    if (ticket_notes.is_deferred)
        ticket_notes.has_ended = true;
    else
        report_deadline_now(GetCurrentTimestamp());
}

static int64 later(int64 moment) { return moment == kNeverExpires ? moment : moment + kLater; }

TicketNotes ticket_notes = {};

// Those behind see it at its key, and at the ancestors.
void pass_over(Ref at, LeaseMode mode, uint32 look) {
    LeaseNode* node = node_at(at);
    bool exclusive = kind_of(mode) == kExclusiveKind;
    note(&node->passed_over, &node->passed_exclusive[0], look, exclusive);
    for (Ref ref = node->parent; ref != 0; ref = node_at(ref)->parent)
        note(&node_at(ref)->passed_below, &node_at(ref)->passed_exclusive[1], look, exclusive);
}

bool is_behind(Ref at, LeaseMode mode, uint32 look) {
    const LeaseNode* node = node_at(at);
    bool exclusive = kind_of(mode) == kExclusiveKind;
    bool is_shared = mode == LeaseMode::kShared;
    if (node->passed_over == look && (!is_shared || node->passed_exclusive[0]))
        return true;
    if (node->passed_below == look && (exclusive || node->passed_exclusive[1]))
        return true;
    for (Ref ref = node->parent; ref != 0; ref = node_at(ref)->parent)
        if (node_at(ref)->passed_over == look && (exclusive || node_at(ref)->passed_exclusive[0]))
            return true;
    return false;
}

void pass_over_waiters(int partition, uint32 look) {
    for_each_waiter(partition, [look](const LeaseWaiter& waiter, int) {
        pass_over(waiter.claim.node, mode_of(waiter.claim), look);
    });
}

LeaseWaiter* this_waiter() { return &waiters[number_of_process()]; }

void join_queue(LeaseWaiter* waiter) {
    waiter->latch = MyLatch;
    waiter->pid = MyProcPid;
    waiter->seen = 0;
    waiter->since = GetCurrentTimestamp();
    waiter->wake_at = kNeverExpires;
    pg_write_barrier();
    waiter->queued = true;
    waiter->token = 0;
    LeaseNode* root = node_at(root_of(waiter->claim.node));
    waiter->next = 0;
    waiter->previous = root->last_waiter;
    *(root->last_waiter != 0 ? &waiter_number(root->last_waiter)->next : &root->first_waiter) =
        number_of(waiter);
    root->last_waiter = number_of(waiter);
}

void leave_queue(LeaseWaiter* waiter) {
    LeaseNode* root = node_at(root_of(waiter->claim.node));
    *(waiter->previous != 0 ? &waiter_number(waiter->previous)->next : &root->first_waiter) =
        waiter->next;
    *(waiter->next != 0 ? &waiter_number(waiter->next)->previous : &root->last_waiter) =
        waiter->previous;
    waiter->queued = false;
}

bool has_queue(Ref node) { return node_at(root_of(node))->first_waiter != 0; }

// R4: the lease of a waiter that has passed others may be in the way of their claims, and be lost
// before these are decided again.
static void note_passed(const LeaseNode& root) {
    for (int number = root.first_waiter; number != 0; number = waiter_number(number)->next)
        waiter_number(number)->claim.is_free = false;
}

Decision serve_queue(Ref node, const LeaseWaiter* asking) {
    LeaseNode* root = node_at(root_of(node));
    Decision answer = {Verdict::kInTheWay, 0, kNeverExpires};
    if (root->first_waiter == 0)
        return answer;
    int64 now = monotonic_now();
    int64 earliest = kNeverExpires;
    Decision work = {Verdict::kInTheWay, 0, 0};
    uint32 look = next_look(waiter_number(root->first_waiter)->claim.partition);
    int next;
    for (int number = root->first_waiter; number != 0; number = next) {
        LeaseWaiter* waiter = waiter_number(number);
        next = waiter->next;
        Decision decision = {Verdict::kInTheWay, 0, later(earliest)};
        if (waiter->passes || !is_behind(waiter->claim.node, mode_of(waiter->claim), look)) {
            decision = decide(&waiter->claim, now);
            if (decision.verdict != Verdict::kGranted &&
                decision.verdict != Verdict::kOtherCapacity)
                earliest = Min(earliest, decision.until);
            if (needs_work(decision))
                work = decision;
        } else {
            waiter->claim.is_free = false;
            if (needs_work(work) && waiter->wake_at <= now)
                decision = work; // its waiter should have done it by now, and is paused
        }
        if (waiter == asking)
            answer = decision;
        if (decision.verdict == Verdict::kGranted) {
            leave_queue(waiter);
            if (waiter->passes)
                note_passed(*root);
            waiter->token = lease_at(waiter->claim.lease)->token;
            SetLatch(waiter->latch);
            continue;
        }
        if (decision.verdict == Verdict::kOtherCapacity) { // to raise its error
            wake_by(waiter, now, now, waiter == asking);
            continue;
        }
        pass_over(waiter->claim.node, mode_of(waiter->claim), look);
        wake_by(waiter, decision.until, now, waiter == asking);
        note_in_the_way(waiter, decision.in_the_way, waiter == asking);
    }
    return answer;
}

LeaseWaiter* first_in_queue(Ref node) {
    return waiter_number(node_at(root_of(node))->first_waiter);
}

void end_lease(LeaseDatabase* database, Ref ref, LeaseEnd how) {
    if (how == LeaseEnd::kLost)
        lose_lease(database, *lease_at(ref));
    lease_at(ref)->ended = true;
    drop_if_ended_and_serve(ref);
}

void drop_if_ended_and_serve(Ref ref) {
    Ref root = root_of(lease_at(ref)->node);
    bool is_awaited = has_queue(root);
    bool had_tickets = node_at(root)->had_tickets != 0;
    if (lease_at(ref)->ended)
        drop_ended(ref);
    if (had_tickets)
        note_end_for_tickets();
    if (is_awaited) // and so the root is still there
        serve_queue(root, nullptr);
}

size_t lease_queue_size() { return sizeof(LeaseWaiter) * waiter_count(); }

void attach_lease_queue(void* memory, bool found) {
    waiters = static_cast<LeaseWaiter*>(memory);
    if (!found)
        memset(waiters, 0, lease_queue_size());
}

int waiter_count() { return MaxBackends + NUM_AUXILIARY_PROCS; }

LeaseWaiter* waiter_number(int number) { return &waiters[number - 1]; }

} // namespace interlock::lease

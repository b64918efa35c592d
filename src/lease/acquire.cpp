// Granting a lease, and waiting for it.

#include "lease/lease.h"
#include "lease/named_grant.h"
#include "lease/pinner.h"
#include "server/client.h"
#include "server/wait_log.h"

namespace interlock::lease {

static bool is_long_term(const LeaseRequest& request) {
    return request.bond == LeaseBond::kTtl && request.ttl > longest_short_lease();
}

static void copy_holder(LeaseAnswer* answer, const Lease& lease) {
    lease.copy_holder(answer->holder);
    answer->holder[lease.holder_length] = '\0';
}

// --- Waiting -------------------------------------------------------------------------------------

static uint32 wait_event() {
    static uint32 event = 0;
    if (event == 0)
        event = named_wait_event("PgInterlockLease");
    return event;
}

[[noreturn]] static void raise_other_capacity(const LeaseKey& key, int capacity) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("permits of \"%s\" are held with another capacity",
                           pnstrdup(key.bytes, key.length)),
                    errhint("Give capacity %d, or wait until all of them have ended.", capacity)));
}

// Of the call: when it began to wait, zero if it has not.
static int64 waits_since = 0;
static LineRef wait_line;

static void count_wait() {
    if (waits_since == 0)
        return;
    count(wait_line, Counter::kWaits);
    count(wait_line, Counter::kWaitTime, static_cast<uint64>(monotonic_now() - waits_since));
    wait_line = {nullptr, 0};
}

// Until the latch is set, the deadline, or the moment at which the waiter has to look again. Ends
// the session of a client that is gone.
static void sleep_until(int64 wake_at, const Deadline& deadline, const WaitLog& log) {
    constexpr int64 kLongestSleep = 3600 * 1000;
    int64 sleep = Max((wake_at - monotonic_now()) / 1000 + 1, 1);
    if (wake_at == kNeverExpires)
        sleep = kLongestSleep;
    if (!deadline.is_never())
        sleep = Min(sleep, deadline.left_in_milliseconds());
    if (waits_since == 0)
        waits_since = monotonic_now();
    sleep = log.shorten(Min(sleep, kLongestSleep));
    wait_for_latch(static_cast<long>(sleep), wait_event());
}

// After an error in the middle of a call: undoes all of it.
static void abandon(int, Datum argument) {
    auto* waiter = reinterpret_cast<LeaseWaiter*>(DatumGetPointer(argument));
    LWLock* lock = partition_lock(waiter->claim.partition);
    count_wait();
    LWLockAcquire(lock, LW_EXCLUSIVE);
    if (waiter->token != 0) {
        Ref lease = find_lease(waiter->claim.node, waiter->token);
        if (lease != 0)
            end_lease(waiter->claim.database, lease, LeaseEnd::kGivenBack);
        release_node(waiter->claim.node);
    } else {
        leave_queue(waiter);
        Ref root = root_of(waiter->claim.node);
        bool is_awaited = has_queue(root);
        drop_claim(waiter->claim);
        if (is_awaited)
            serve_queue(root, nullptr);
    }
    LWLockRelease(lock);
}

static LeaseRoom make_lease_for(const LeaseRequest& request, LeaseAccess access, Ref* made) {
    LeaseInfo info = {};
    info.ttl = request.ttl;
    info.role = request.role;
    info.mode = request.mode;
    info.capacity = static_cast<uint32>(request.capacity);
    LeaseCharge charge;
    LeaseText text = {request.holder, request.holder_length};
    if (request.at_least > 0) {
        text.stay = LeaseStay::kAtLeast;
        text.release_gives = units_of_release(request.ttl - request.at_least);
    }
    uint32 units = units_of_lease(request.key, request.holder_length);
    if (!charge_lease(info.role, units, access, &charge))
        return LeaseRoom::kRoleIsFull;
    Ref lease = make_lease(info, text, charge, access);
    if (lease == 0) {
        discharge_lease(charge);
        return LeaseRoom::kFull;
    }
    lease_at(lease)->pid = request.bond == LeaseBond::kTtl ? 0 : MyProcPid;
    lease_at(lease)->long_term = is_long_term(request);
    *made = lease;
    return LeaseRoom::kYes;
}

static void join(LeaseWaiter* waiter, const LeaseRequest& request) {
    waiter->has_pins = has_pins();
    waiter->resumes = request.resumes;
    waiter->passes = request.has_others;
    join_queue(waiter);
}

// A lease that was granted while this process was paused may be over before it was seen: then the
// claim is made again, at the end of the queue.
static LeaseRoom claim_again_if_over(LeaseWaiter* waiter, const LeaseRequest& request) {
    LeaseClaim* claim = &waiter->claim;
    Ref lease = find_lease(claim->node, waiter->token);
    if (lease != 0 && is_live(*lease_at(lease), monotonic_now()))
        return LeaseRoom::kYes;
    if (lease != 0 && !lease_at(lease)->ended)
        end_lease(claim->database, lease, LeaseEnd::kGivenBack); // its room is for the next
    LeaseRoom room = make_lease_for(request, claim->access, &claim->lease);
    claim->is_free = false;
    if (room == LeaseRoom::kYes)
        join(waiter, request);
    return room;
}

static bool is_resumed_by(const Lease& lease, const LeaseRequest& request) {
    return request.resumes && !lease.is_given_back() && lease.pid == 0 &&
           lease.role == request.role && lease.mode == request.mode &&
           lease.has_holder({request.holder, request.holder_length});
}

// Whether the lease in the way stays for as long as the wait: it is bound to this session, or
// pinned by this transaction. Or there is nothing to wait for, as it is the caller's to resume.
static bool waits_for_itself(const Decision& decision, const LeaseRequest& request) {
    if (decision.in_the_way == 0)
        return false;
    const Lease& lease = *lease_at(decision.in_the_way);
    if (lease.mode == LeaseMode::kPermit && request.capacity > 1) // another permit can end
        return false;
    if (lease.pid == MyProcPid && !lease.ended)
        return true;
    return has_pinned_token(lease.token) || is_resumed_by(lease, request);
}

namespace {

// What is in the way, copied under the partition's lock.
struct SeenInTheWay {
    bool is_lease;
    char holder[kMaxHolderBytes + 1];
    Oid role;
    int pid; // of the session or the transaction that has it, or of the waiter before; 0: none
    int64 expires;
};

} // namespace

static SeenInTheWay look_in_the_way(const LeaseWaiter& waiter, const Decision& decision) {
    SeenInTheWay seen = {};
    const LeaseWaiter* first = first_in_queue(waiter.claim.node);
    if (decision.in_the_way == 0 && first != &waiter)
        seen.pid = first->pid;
    if (decision.in_the_way == 0)
        return seen;
    const Lease& lease = *lease_at(decision.in_the_way);
    seen.is_lease = true;
    lease.copy_holder(seen.holder);
    seen.role = lease.role;
    seen.expires = lease.expires;
    seen.pid = lease.pid;
    for_each_pinner(lease, [&seen](const Pinner& pinner) { seen.pid = pinner.pid; });
    return seen;
}

static const char* name_of_lease(const LeaseRequest& request) {
    return psprintf("lease \"%s\"", pnstrdup(request.key.bytes, request.key.length));
}

static void log_wait(WaitLog* log, const LeaseRequest& request, const SeenInTheWay& seen) {
    const char* process = seen.pid == 0 ? "" : psprintf(", process %d", seen.pid);
    const char* detail = nullptr;
    if (seen.is_lease)
        detail =
            psprintf("It is held by \"%s\" (role \"%s\"%s) until %s.", seen.holder,
                     role_name(seen.role), process, timestamptz_to_str(shown_time(seen.expires)));
    else if (seen.pid != 0)
        detail = psprintf("Process %d waits before it.", seen.pid);
    log->write(name_of_lease(request), detail);
}

static LeaseAnswer granted_answer(const LeaseClaim& claim) {
    const Lease& lease = *lease_at(claim.lease);
    LeaseAnswer answer;
    answer.outcome = LeaseOutcome::kAcquired;
    answer.token = lease.token;
    answer.expires = lease.expires;
    copy_holder(&answer, lease);
    return answer;
}

// The lease in the way, or else the claim at the head of the queue.
static LeaseAnswer refused_answer(const Decision& decision, const LeaseClaim& claim) {
    LeaseAnswer answer;
    bool recovering = decision.verdict == Verdict::kRecovering;
    answer.outcome = recovering ? LeaseOutcome::kRecovering : LeaseOutcome::kHeld;
    answer.token = 0;
    answer.expires = recovering ? decision.until : 0;
    answer.holder[0] = '\0';
    if (decision.in_the_way != 0) {
        answer.expires = lease_at(decision.in_the_way)->expires;
        copy_holder(&answer, *lease_at(decision.in_the_way));
    } else if (!recovering && has_queue(claim.node)) {
        copy_holder(&answer, *lease_at(first_in_queue(claim.node)->claim.lease));
    }
    return answer;
}

// Makes durable, or clears, what a claim waits for besides leases.
static void do_work(LeaseDatabase* database, const LeaseRequest& request,
                    const Decision& decision) {
    if (decision.verdict == Verdict::kNotDurable)
        make_durable(database, decision.ttl);
    else
        clear_records_in_the_way(database, request.key, request.mode);
}

// With the waiter in the queue and the partition's lock held; so it is on return.
static LeaseAnswer wait_in_queue(LeaseWaiter* waiter, const LeaseRequest& request,
                                 const Deadline& deadline, WaitLog* log) {
    LWLock* lock = partition_lock(waiter->claim.partition);
    for (;;) {
        LeaseRoom room = LeaseRoom::kYes;
        if (waiter->token != 0)
            room = claim_again_if_over(waiter, request);
        if (room != LeaseRoom::kYes) {
            LWLockRelease(lock);
            raise_no_room(room, request.role);
        }
        Decision decision = {Verdict::kGranted, 0, 0};
        if (waiter->token == 0)
            decision = serve_queue(waiter->claim.node, waiter);
        if (waiter->token != 0)
            return granted_answer(waiter->claim);
        int capacity = other_capacity(waiter->claim);
        if (capacity != 0) {
            LWLockRelease(lock);
            raise_other_capacity(request.key, capacity);
        }
        int64 wake_at = waiter->wake_at;
        if (!needs_work(decision) && (deadline.has_passed() || waits_for_itself(decision, request)))
            return refused_answer(decision, waiter->claim);
        bool is_long = log->is_due();
        SeenInTheWay seen = is_long ? look_in_the_way(*waiter, decision) : SeenInTheWay{};
        LWLockRelease(lock);
        if (is_long)
            log_wait(log, request, seen);
        if (needs_work(decision))
            do_work(waiter->claim.database, request, decision);
        else
            sleep_until(wake_at, deadline, *log);
        LWLockAcquire(lock, LW_EXCLUSIVE);
    }
}

// The same, without the lock on return. False: the lease has expired before it was durable, and
// another has it or waits for it.
static bool answer_in_turn(LeaseWaiter* waiter, const LeaseRequest& request,
                           const Deadline& deadline, WaitLog* log, LeaseAnswer* answer) {
    *answer = wait_in_queue(waiter, request, deadline, log);
    LWLockRelease(partition_lock(waiter->claim.partition));
    if (answer->outcome != LeaseOutcome::kAcquired || !is_long_term(request))
        return true;
    answer->expires =
        record_lease(waiter->claim.database, request.key, answer->token, request.ttl, 0);
    return answer->expires != 0;
}

// The slow path: something must become durable first, or another lease is in the way.
static pg_noinline LeaseAnswer acquire_slowly(LeaseWaiter* waiter, const LeaseRequest& request,
                                              const Deadline& deadline) {
    LWLock* lock = partition_lock(request.key.partition);
    LeaseAnswer answer;
    WaitLog log;
    Datum argument = PointerGetDatum(waiter);
    PG_ENSURE_ERROR_CLEANUP(abandon, argument);
    {
        while (!answer_in_turn(waiter, request, deadline, &log, &answer))
            LWLockAcquire(lock, LW_EXCLUSIVE);
        if (answer.outcome == LeaseOutcome::kAcquired)
            check_client(); // it may have gone before the grant, or while that was recorded
        log.write_end(name_of_lease(request), answer.outcome == LeaseOutcome::kAcquired);
    }
    PG_END_ENSURE_ERROR_CLEANUP(abandon, argument);
    count_wait();
    if (answer.outcome != LeaseOutcome::kAcquired)
        abandon(0, argument);
    return answer;
}

// Grants the waiter's claim if nothing is in its way and no waiter before it excludes it.
static Decision decide_in_turn(LeaseWaiter* waiter, const LeaseRequest& request) {
    if (!has_queue(waiter->claim.node))
        return decide(&waiter->claim, monotonic_now());
    join(waiter, request);
    Decision decision = serve_queue(waiter->claim.node, waiter);
    if (decision.verdict != Verdict::kGranted)
        leave_queue(waiter);
    return decision;
}

// With the partition's lock held.
static LeaseRoom make_claim(LeaseDatabase* database, const LeaseRequest& request,
                            LeaseAccess access, LeaseClaim* claim) {
    *claim = {};
    claim->database = database;
    claim->partition = request.key.partition;
    claim->node = use_node(request.key, access);
    claim->capacity = request.capacity;
    claim->access = access;
    if (claim->node == 0)
        return LeaseRoom::kFull;
    LeaseRoom room = make_lease_for(request, access, &claim->lease);
    if (room != LeaseRoom::kYes)
        release_node(claim->node);
    return room;
}

void drop_claim(const LeaseClaim& claim) {
    free_lease(claim.lease);
    release_node(claim.node);
}

void lock_and_claim(LeaseDatabase* database, const LeaseRequest& request, LeaseClaim* claim) {
    LWLock* lock = partition_lock(request.key.partition);
    RoomSearch search;
    for (;;) {
        LWLockAcquire(lock, LW_EXCLUSIVE);
        LeaseRoom room = make_claim(database, request, search.access, claim);
        if (room == LeaseRoom::kYes)
            return;
        LWLockRelease(lock);
        find_room(database, room, request.role, &search);
    }
}

void find_room(LeaseDatabase* database, LeaseRoom room, Oid role, RoomSearch* search) {
    if (search->access == LeaseAccess::kOrdinary && superuser_arg(role)) {
        search->access = LeaseAccess::kPrivileged;
        return;
    }
    if (search->has_dropped)
        note_look_for_room(role);
    bool pauses = search->access == LeaseAccess::kOrdinary && has_looked_for_room(role);
    if (search->has_dropped || pauses)
        raise_no_room(room, role);
    make_room(database);
    search->has_dropped = true;
}

void raise_no_room(LeaseRoom room, Oid role) {
    if (room == LeaseRoom::kRoleIsFull)
        ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                        errmsg("role \"%s\" has used up its share of leases", role_name(role)),
                        errdetail("One role may have %u leases at once; those with a long key, or "
                                  "with several levels, count more.",
                                  lease_share()),
                        errhint("Release leases, or increase interlock.max_leases_per_role.")));
    ereport(ERROR,
            (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED), errmsg("there are too many leases"),
             errhint("You may need to increase interlock.max_leases. View interlock.usage shows "
                     "which roles have them.")));
}

LineRef line_of(const LeaseKey& key) {
    return line_of_key(CountedKind::kLease, {key.bytes, key.length});
}

void count_answer(const LeaseKey& key, const LeaseAnswer& answer) {
    LineRef line = line_of(key);
    count(line, Counter::kCalls);
    if (answer.outcome == LeaseOutcome::kHeld)
        count(line, waits_since != 0 ? Counter::kTimeouts : Counter::kConflicts);
    else if (answer.outcome == LeaseOutcome::kRecovering)
        count(line, Counter::kRefusals);
    waits_since = 0;
}

LeaseAnswer acquire_lease_for(LeaseDatabase* database, const LeaseRequest& request,
                              const Deadline& deadline) {
    LeaseWaiter* waiter = this_waiter();
    LWLock* lock = partition_lock(request.key.partition);
    waits_since = 0;
    if (request.bond == LeaseBond::kSession)
        prepare_to_bind(1);
    lock_and_claim(database, request, &waiter->claim);
    Decision decision = {Verdict::kNotDurable, 0, 0};
    if (!is_long_term(request))
        decision = decide_in_turn(waiter, request);
    LeaseAnswer answer;
    if (decision.verdict == Verdict::kGranted) {
        answer = granted_answer(waiter->claim);
    } else if (int capacity = other_capacity(waiter->claim)) {
        drop_claim(waiter->claim);
        LWLockRelease(lock);
        raise_other_capacity(request.key, capacity);
    } else if (!needs_work(decision) && deadline.has_passed()) {
        answer = refused_answer(decision, waiter->claim);
        drop_claim(waiter->claim);
        LWLockRelease(lock);
        return answer;
    } else {
        join(waiter, request);
        wait_line = line_of(request.key);
        answer = acquire_slowly(waiter, request, deadline);
        if (answer.outcome != LeaseOutcome::kAcquired)
            return answer;
        LWLockAcquire(lock, LW_EXCLUSIVE);
    }
    release_node(waiter->claim.node);
    LWLockRelease(lock);
    if (request.bond == LeaseBond::kSession)
        bind_lease(request.key, answer.token);
    if (request.bond != LeaseBond::kCall)
        note_named_grant(request.key, request.role, {request.holder, request.holder_length},
                         answer.token);
    return answer;
}

} // namespace interlock::lease

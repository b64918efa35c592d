// Renewing, reclaiming and releasing by token.

#include "lease/argument.h"
#include "lease/lease.h"
#include "lease/named_grant.h"
#include "lease/notify.h"
#include "lease/token_role.h"

namespace interlock::lease {

constexpr int64 kDefaultTtl = 30 * USECS_PER_SEC;

static bool is_half_over(const Lease& lease) {
    return lease.pid == 0 && lease.expires - monotonic_now() < lease.span / 2;
}

namespace {

enum class Renewal {
    kDone,
    kLost,
    kNotDurable,  // make_durable() first
    kStaleRecord, // clear_records() first
    kUnknown,     // not in memory, or not the caller's
    kBound,       // to a session: it has no time for at_least
};

} // namespace

// R7, and then as a grant with the former token.
static Renewal reclaim_at(const LeaseClaim& claim, const LeaseKey& key, int64 token,
                          int64* expires) {
    int64 now = monotonic_now();
    Lease* lease = lease_at(claim.lease);
    if (!is_former_token(claim.database, token) ||
        is_lost_token(claim.database, key, lease->role, token))
        return Renewal::kLost;
    *expires = now + lease->ttl;
    if (lease->ttl <= longest_short_lease() && !covers(claim.database, *expires))
        return Renewal::kNotDurable;
    Decision decision = make_way_for_reclaim(claim, token, now);
    if (decision.verdict == Verdict::kStaleRecord)
        return Renewal::kStaleRecord;
    if (decision.verdict != Verdict::kGranted)
        return Renewal::kLost;
    lease->token = token;
    lease->span = lease->ttl;
    lease->since = GetCurrentTimestamp();
    lease->expires = *expires;
    put_lease(claim.node, claim.lease);
    release_node(claim.node);
    drop_if_ended_and_serve(claim.lease); // it can end earlier than the one that its waiters know
    return Renewal::kDone;
}

static Renewal reclaim(LeaseDatabase* database, const LeaseKey& key, int64 token,
                       const LeaseRenewal& renewal, int64* expires) {
    if (!is_former_token(database, token))
        return Renewal::kLost;
    LeaseRequest request = {};
    request.role = role_of_token(database, key, token);
    if (!OidIsValid(request.role))
        return Renewal::kLost;
    request.key = key;
    request.mode = mode_of_token(token);
    request.ttl = renewal.ttl;
    request.at_least = renewal.at_least;
    request.bond = LeaseBond::kTtl;
    request.holder = renewal.holder.data();
    request.holder_length = renewal.holder.size();
    if (renewal.holder.empty())
        request.holder = default_holder(&request.holder_length);
    LeaseClaim claim;
    lock_and_claim(database, request, &claim);
    Ref there = find_lease(claim.node, token);
    Renewal done = Renewal::kLost; // for two roles, as a token can be by chance
    if (there == 0)
        done = reclaim_at(claim, key, token, expires);
    else if (lease_at(there)->role == request.role)
        done = Renewal::kNotDurable; // another session has reclaimed it meanwhile: renew
    if (done != Renewal::kDone)
        drop_claim(claim);
    LWLockRelease(partition_lock(key.partition));
    return done;
}

// Of the holder's leases at the key, of any role, in the order in which find_lease() meets them:
// a list of HeldToken.
static List* tokens_of_holder(const LeaseKey& key, std::string_view holder) {
    List* tokens = NIL;
    LWLockAcquire(partition_lock(key.partition), LW_SHARED);
    Ref node = find_node(key);
    for (Ref ref = node == 0 ? 0 : node_at(node)->leases; ref != 0; ref = lease_at(ref)->next) {
        const Lease& lease = *lease_at(ref);
        if (lease.is_given_back() || !lease.has_holder(holder))
            continue;
        auto* token = static_cast<HeldToken*>(palloc(sizeof(HeldToken)));
        *token = {lease.token, lease.role};
        tokens = lappend(tokens, token);
    }
    LWLockRelease(partition_lock(key.partition));
    return tokens;
}

// Whether a lease that is released stays; then it ends when it may.
static bool has_to_stay(Lease* lease, int64 now) {
    if (lease->stay == LeaseStay::kNone || lease->stay_until() <= now)
        return false;
    lease->stay = LeaseStay::kReleased;
    lease->expires = lease->stay_until();
    lease->release_gives = 0;
    lease->span = lease->expires - now;
    return true;
}

// R9, with the time that is left. A crash before that leaves the old expiry.
static void shorten_record(LeaseDatabase* database, const LeaseKey& key, int64 token) {
    if (write_record(database, key, token, 0) == RecordWrite::kCanceled)
        raise_not_on_standbys();
}

static bool is_lost(const Lease& lease, int64 now) {
    return lease.is_given_back() || (lease.expires <= now && has_queue(lease.node));
}

// What a renewal for `ttl` comes to; the expiry that it would have. With the partition's lock held.
//
// An expired lease is renewed if nothing was granted since and no client waits in its tree. One
// that lasts too long for the horizon gets a record, also if this renewal is short: a longer one
// can have failed before it was recorded.
static Renewal can_renew(LeaseDatabase* database, Ref ref, int64 ttl, int64 at_least,
                         int64* expires) {
    if (ref == 0)
        return Renewal::kUnknown;
    const Lease& lease = *lease_at(ref);
    int64 now = monotonic_now();
    if (is_lost(lease, now))
        return Renewal::kLost;
    *expires = lease.expires;
    if (lease.pid != 0)
        return at_least > 0 ? Renewal::kBound : Renewal::kDone;
    *expires = Max(lease.expires, now + ttl);
    bool is_short = *expires - now <= longest_short_lease();
    if (!has_record(lease) && is_short && !covers(database, *expires))
        return Renewal::kNotDurable;
    return Renewal::kDone;
}

// After kDone: renews it. Whether it is late.
static bool extend_lease(Ref ref, int64 ttl, int64 at_least, int64 expires) {
    Lease* lease = lease_at(ref);
    bool is_late = is_half_over(*lease);
    if (lease->pid != 0)
        return is_late;
    int64 now = monotonic_now();
    lease->extend(expires);
    lease->span = expires - now;
    lease->ttl = ttl;
    if (at_least > 0)
        lease->stay_at_least(now + at_least);
    return is_late;
}

static void count_renewal(const LeaseKey& key, bool is_late) {
    count(line_of(key), Counter::kRenewals);
    if (is_late)
        count(line_of(key), Counter::kLateRenewals);
}

int64 renew_lease_of(LeaseDatabase* database, const LeaseKey& key, int64 token,
                     const LeaseRenewal& renewal) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        int64 expires = 0;
        LeaseRenewal wanted = renewal;
        bool is_recorded = false;
        bool is_late = false;
        Renewal done = Renewal::kUnknown;
        with_own_lease(key, token, LW_EXCLUSIVE, [&](Ref lease) {
            if (lease != 0 && wanted.ttl == 0)
                wanted.ttl = lease_at(lease)->ttl;
            done = can_renew(database, lease, wanted.ttl, wanted.at_least, &expires);
            if (done == Renewal::kDone)
                is_late = extend_lease(lease, wanted.ttl, wanted.at_least, expires);
            is_recorded = lease != 0 && has_record(*lease_at(lease));
        });
        if (wanted.ttl == 0)
            wanted.ttl = kDefaultTtl;
        if (done == Renewal::kUnknown)
            done = reclaim(database, key, token, wanted, &expires);
        if (done == Renewal::kLost)
            return 0;
        if (done == Renewal::kBound)
            refuse_at_least_of_session();
        if (done == Renewal::kNotDurable) {
            int64 needed = Max(wanted.ttl, expires - monotonic_now());
            make_durable(database, Min(needed, longest_short_lease()));
            continue;
        }
        if (done == Renewal::kStaleRecord) {
            clear_records(database, key.partition);
            continue;
        }
        count_renewal(key, is_late);
        if (expires != kNeverExpires && (is_recorded || !covers(database, expires)))
            return record_lease(database, key, token, wanted.ttl, expires);
        return expires;
    }
}

int64 renew_leases_of(LeaseDatabase* database, const LeaseToken* leases, int count,
                      const LeaseRenewal& renewal) {
    for (int i = 0; i < count; i++) {
        CHECK_FOR_INTERRUPTS();
        bool is_known = false;
        bool is_held = false;
        with_own_lease(leases[i].key, leases[i].token, LW_SHARED, [&](Ref lease) {
            is_known = lease != 0;
            is_held = is_known && !is_lost(*lease_at(lease), monotonic_now());
        });
        if (!is_known) // one from before a crash is reclaimed
            is_held = renew_lease_of(database, leases[i].key, leases[i].token, renewal) != 0;
        if (!is_held)
            return 0;
    }
    int64 first = kNeverExpires;
    for (int i = 0; i < count; i++) {
        int64 expires = renew_lease_of(database, leases[i].key, leases[i].token, renewal);
        if (expires == 0)
            return 0;
        first = Min(first, expires);
    }
    return first;
}

// The latest token of what a call like this one has acquired, if it is held.
int64 token_of_request(const LeaseRequest& request) {
    int64 latest = 0;
    int32 pid = request.bond == LeaseBond::kSession ? MyProcPid : 0;
    LWLockAcquire(partition_lock(request.key.partition), LW_SHARED);
    Ref node = find_node(request.key);
    for (Ref ref = node == 0 ? 0 : node_at(node)->leases; ref != 0; ref = lease_at(ref)->next) {
        const Lease& lease = *lease_at(ref);
        if (lease.token > latest && !lease.is_given_back() && lease.role == request.role &&
            lease.mode == request.mode && lease.pid == pid &&
            lease.has_holder({request.holder, request.holder_length}))
            latest = lease.token;
    }
    LWLockRelease(partition_lock(request.key.partition));
    return latest;
}

bool resume_lease_for(LeaseDatabase* database, const LeaseRequest& request, LeaseAnswer* answer) {
    int64 token = token_of_request(request);
    if (token == 0)
        return false;
    answer->expires = renew_lease_of(database, request.key, token, {request.ttl});
    if (answer->expires == 0)
        return false;
    note_named_grant(request.key, request.role, {request.holder, request.holder_length}, token);
    answer->outcome = LeaseOutcome::kResumed;
    answer->token = token;
    memcpy(answer->holder, request.holder, request.holder_length);
    answer->holder[request.holder_length] = '\0';
    return true;
}

LeaseAnswer resume_or_acquire(LeaseDatabase* database, const LeaseRequest& request,
                              const Deadline& deadline) {
    LeaseAnswer answer;
    if (resume_lease_for(database, request, &answer))
        return answer;
    answer = acquire_lease_for(database, request, deadline);
    if (answer.outcome == LeaseOutcome::kHeld)
        (void)resume_lease_for(database, request, &answer);
    return answer;
}

List* tokens_of_name(LeaseDatabase* database, const LeaseKey& key, std::string_view holder) {
    int64 last = last_named_token(database, key, holder);
    bool has_later = false;
    List* tokens = NIL;
    ListCell* cell;
    foreach (cell, tokens_of_holder(key, holder)) {
        CHECK_FOR_INTERRUPTS();
        auto* token = static_cast<HeldToken*>(lfirst(cell));
        bool is_later = token->token > last;
        if (acts_for(token->role) && !is_later)
            tokens = lappend(tokens, token);
        has_later = has_later || is_later;
    }
    if (has_later)
        ereport(WARNING,
                (errmsg("the current lease of \"%s\" on \"%s\" was not acquired by this session",
                        pnstrdup(holder.data(), holder.size()), pnstrdup(key.bytes, key.length)),
                 errhint("Give the token, or use a different holder for each client.")));
    return tokens;
}

bool release_lease_of(LeaseDatabase* database, const LeaseKey& key, int64 token) {
    bool was_held = false;
    bool had_record = false;
    bool stays = false;
    with_own_lease(key, token, LW_EXCLUSIVE, [&](Ref lease) {
        had_record = lease != 0 && has_record(*lease_at(lease));
        if (lease == 0 || lease_at(lease)->is_given_back())
            return;
        int64 now = monotonic_now();
        was_held = is_live(*lease_at(lease), now);
        stays = was_held && has_to_stay(lease_at(lease), now);
        ticket_notes.is_deferred = true;
        // R4: one that expired is lost, and the answer says so: its token must not come back.
        if (!stays)
            end_lease(database, lease, was_held ? LeaseEnd::kGivenBack : LeaseEnd::kLost);
        else // it ends earlier than its waiters know
            drop_if_ended_and_serve(lease);
        ticket_notes.is_deferred = false;
    });
    if (ticket_notes.has_ended)
        notify_at_commit(key.partition);
    ticket_notes.has_ended = false;
    if (was_held)
        forget_bound_lease(token);
    if (had_record && stays)
        shorten_record(database, key, token);
    else if (had_record)
        clear_records(database, key.partition);
    return was_held;
}

bool end_lease_of(LeaseDatabase* database, const LeaseKey& key, int64 token, LeaseEnd how) {
    bool is_there = false;
    with_lease(key, token, [&](Ref lease) {
        is_there = lease != 0 && !lease_at(lease)->ended;
        if (is_there)
            end_lease(database, lease, how);
    });
    return is_there;
}

} // namespace interlock::lease

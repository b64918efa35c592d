// Leases: locks with a time to live, in shared memory, with a fencing token.
//
// docs/internals/leases.md has the guarantees and the rules. The functions work at any isolation
// level and in read-only transactions, and take effect at once: a commit or rollback does not
// change a lease. Durable state is written outside of the transaction (lease/store.h).
//
// SQLSTATEs: IL006 if the lease is not held, 22004 and 22023 for bad arguments, 25006 on a standby,
// 53400 if there is no room, 55000 without preload.
#pragma once

#include "contention/count.h"
#include "lease/database_start.h"
#include "lease/queue.h"
#include "server/deadline.h"

namespace interlock::lease {

struct LeaseRequest {
    LeaseKey key;
    Oid role;
    LeaseMode mode;
    int capacity; // of a permit
    int64 ttl;
    int64 at_least; // how long the lease stays even if it is released
    LeaseBond bond;
    bool resumes; // the wait ends if the same holder has the lease
    const char* holder;
    size_t holder_length;
    bool has_others; // the call holds other leases, so it passes waiters (lease/queue.h)
};

enum class LeaseOutcome { kAcquired, kResumed, kHeld, kRecovering };
const char* lease_outcome_name(LeaseOutcome outcome);

struct LeaseAnswer {
    LeaseOutcome outcome;
    int64 token;   // token of the acquired or resumed lease
    int64 expires; // of the lease, of the lease that excludes it, or of the grace; monotonic
    char holder[kMaxHolderBytes + 1]; // of the lease, or of the lease that excludes it
};

// The counters of the key's class (contention/count.h), and what a call of acquire_lease or a
// similar function adds to them.
LineRef line_of(const LeaseKey& key);
void count_answer(const LeaseKey& key, const LeaseAnswer& answer);

// Grants the request. Waits until the deadline at most.
LeaseAnswer acquire_lease_for(LeaseDatabase* database, const LeaseRequest& request,
                              const Deadline& deadline);

// The next two functions and pin_lease() treat a lease as not existing if the caller does not act
// for its role (lease/token_role.h).

struct LeaseRenewal {
    int64 ttl;                    // 0: unchanged
    int64 at_least = 0;           // from now on; 0: unchanged
    std::string_view holder = {}; // for a lease reclaimed after a crash; empty: the default
};

// The new expiry, which is never earlier than the current one. 0: the lease is lost.
int64 renew_lease_of(LeaseDatabase* database, const LeaseKey& key, int64 token,
                     const LeaseRenewal& renewal);

// Renews all of the leases. If one of them is lost, renews none and returns 0. Otherwise returns
// the earliest new expiry.
struct LeaseToken {
    LeaseKey key;
    int64 token;
};
int64 renew_leases_of(LeaseDatabase* database, const LeaseToken* leases, int count,
                      const LeaseRenewal& renewal);

// The latest token acquired by a request like this one, if it is held. Otherwise 0.
int64 token_of_request(const LeaseRequest& request);

// Renews the lease that the same role and holder have on the key in the same mode. Returns false if
// there is none.
bool resume_lease_for(LeaseDatabase* database, const LeaseRequest& request, LeaseAnswer* answer);

// Resumes the lease, otherwise acquires it. It also resumes after a wait: another call of the
// holder, whose answer was lost, may have acquired it meanwhile.
LeaseAnswer resume_or_acquire(LeaseDatabase* database, const LeaseRequest& request,
                              const Deadline& deadline);

// As acquire_lease_for(), or resume_or_acquire() if the request resumes (lease/notify.cpp). If the
// caller is refused, *ticket is its ticket, otherwise 0. Raises 53400 if there is no room for the
// ticket.
LeaseAnswer acquire_or_ask(LeaseDatabase* database, const LeaseRequest& request,
                           const Deadline& deadline, int64* ticket);

// Ends the holder's tickets for the key (lease/notify.cpp), of roles for which the caller acts.
// Returns whether there were any.
bool withdraw_tickets(const LeaseKey& key, std::string_view holder);

// Returns whether the lease was held.
bool release_lease_of(LeaseDatabase* database, const LeaseKey& key, int64 token);

struct HeldToken {
    int64 token; // token of a lease, or number of a ticket
    Oid role;
};

// The holder's leases at the key, of roles for which the caller acts: a list of HeldToken. Leaves
// out, with a warning, leases that were granted to other clients with that name
// (lease/named_grant.h).
List* tokens_of_name(LeaseDatabase* database, const LeaseKey& key, std::string_view holder);

// Ends the lease, except for its record. Returns whether it existed.
bool end_lease_of(LeaseDatabase* database, const LeaseKey& key, int64 token, LeaseEnd how);

// Runs body(Ref) under the partition's lock. Ref 0: there is no lease with that token.
template <typename Body>
void with_lease(const LeaseKey& key, int64 token, Body&& body) {
    LWLock* lock = partition_lock(key.partition);
    LWLockAcquire(lock, LW_EXCLUSIVE);
    body(find_lease(find_node(key), token));
    LWLockRelease(lock);
}

// --- Records of long leases (lease/long_lease.cpp) -----------------------------------------------

// R9: makes the lease durable by its own record. The `ttl` begins then. Returns the new expiry,
// which is not before `earliest`. Returns 0 if the lease is over: it was broken, or it expired
// while another client waited for it. `earliest` 0 means a new lease: if the wait for the standbys
// is canceled, it is released and 57014 is raised.
int64 record_lease(LeaseDatabase* database, const LeaseKey& key, int64 token, int64 ttl,
                   int64 earliest);

// Writes only the record, for a lease that lasts until `until` at least. kOver: the lease is over.
// kCanceled: the wait for the standbys was canceled.
enum class RecordWrite { kDone, kOver, kCanceled };
RecordWrite write_record(LeaseDatabase* database, const LeaseKey& key, int64 token, int64 until);

// Ends a lease whose token was not returned to any client, and clears its record without waiting
// for the flush. The record is cleared again before a lease that it excludes is granted.
void give_back_recorded(LeaseDatabase* database, const LeaseKey& key, int64 token);

// How much longer than the ttl a record lasts. This is longer than writing the record normally
// takes.
constexpr int64 kRecordReserve = USECS_PER_SEC;

// Clears the records of the partition's leases that are over. That ends these leases.
void clear_records(LeaseDatabase* database, int partition);

// The same for the leases that a lease of that mode at the key waits for, including expired leases:
// many of them at once. No lock must be held.
void clear_records_in_the_way(LeaseDatabase* database, const LeaseKey& key, LeaseMode mode);

// Drops ended leases, to free memory.
void make_room(LeaseDatabase* database);

// --- Claims (lease/acquire.cpp) ------------------------------------------------------------------

// For a lease of a role that found no room. Frees memory before the next attempt, with no lock
// held. First superusers become privileged, then expired leases are dropped. Raises 53400 if both
// were tried.
struct RoomSearch {
    LeaseAccess access = LeaseAccess::kOrdinary;
    bool has_dropped = false;
};
void find_room(LeaseDatabase* database, LeaseRoom room, Oid role, RoomSearch* search);

// Locks the partition and makes a claim that uses its key and has its own lease. Raises 53400 if
// there is no room.
void lock_and_claim(LeaseDatabase* database, const LeaseRequest& request, LeaseClaim* claim);
void drop_claim(const LeaseClaim& claim); // the lock must be held
[[noreturn]] void raise_no_room(LeaseRoom room, Oid role);

// --- What a transaction or a session holds (lease/assertion.cpp) ---------------------------------

// Pins the lease: no lease that it excludes is granted until the transaction has ended. Returns
// false if the lease is not held.
bool pin_lease(const LeaseKey& key, int64 token);

// Whether the current transaction has pinned the lease with that token.
bool has_pinned_token(int64 token);

bool has_pins();

// Whether the current transaction has pinned the key or an ancestor, in exclusive mode.
bool has_pinned(const char* key, size_t length);

// Prepares the session to end `count` more leases when it ends. To be called before they are
// granted.
void prepare_to_bind(int count);
void bind_lease(const LeaseKey& key, int64 token);
void forget_bound_lease(int64 token);

// Requests the shared memory and defines the setting of its size.
void preload_leases();

} // namespace interlock::lease

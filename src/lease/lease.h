// Leases: locks with a time to live, in shared memory, with a token that fences.
//
// docs/internals/leases.md has the guarantees and the rules. The verbs work in any isolation level
// and in read-only transactions, and take effect at once: commit and rollback make no difference to
// a lease. Durable state is written outside of the transaction (lease/store.h).
//
// SQLSTATEs: IL006 the lease is not held; 22004, 22023 bad arguments; 25006 on a standby; 53400 no
// room; 55000 not preloaded.
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
    int64 at_least; // how long it stays even when it is released
    LeaseBond bond;
    bool resumes; // a lease of the same holder ends the wait for it
    const char* holder;
    size_t holder_length;
    bool has_others; // the call has leases of other keys: it passes waiters (lease/queue.h)
};

enum class LeaseOutcome { kAcquired, kResumed, kHeld, kRecovering };
const char* lease_outcome_name(LeaseOutcome outcome);

struct LeaseAnswer {
    LeaseOutcome outcome;
    int64 token;   // of an acquired or resumed lease
    int64 expires; // of the lease, of the one in its way, or of the grace; monotonic
    char holder[kMaxHolderBytes + 1]; // of the lease, or the one in its way
};

// The counters of the key's class (contention/count.h), and what a call of acquire_lease or its
// like adds to them.
LineRef line_of(const LeaseKey& key);
void count_answer(const LeaseKey& key, const LeaseAnswer& answer);

// Grants the request, waiting until the deadline at most.
LeaseAnswer acquire_lease_for(LeaseDatabase* database, const LeaseRequest& request,
                              const Deadline& deadline);

// For the next two and for pin_lease, a lease of a role that the caller does not act for
// (lease/token_role.h) does not exist.

struct LeaseRenewal {
    int64 ttl;                    // 0: as before
    int64 at_least = 0;           // from now on; 0: what it has
    std::string_view holder = {}; // of one that is reclaimed after a crash; empty: the default
};

// The new expiry, never earlier than the current one; 0: the lease is lost.
int64 renew_lease_of(LeaseDatabase* database, const LeaseKey& key, int64 token,
                     const LeaseRenewal& renewal);

// Renews all of them, or none when one of them is lost: 0. The earliest of the new expiries.
struct LeaseToken {
    LeaseKey key;
    int64 token;
};
int64 renew_leases_of(LeaseDatabase* database, const LeaseToken* leases, int count,
                      const LeaseRenewal& renewal);

// The latest token of what a request like this one has acquired, if it is held; else 0.
int64 token_of_request(const LeaseRequest& request);

// The lease that the same role and holder have on the key, in the same mode, renewed. False: there
// is none.
bool resume_lease_for(LeaseDatabase* database, const LeaseRequest& request, LeaseAnswer* answer);

// The lease resumed, else acquired. Resumed after a wait, too: another call of the holder, whose
// answer was lost, may have acquired it meanwhile.
LeaseAnswer resume_or_acquire(LeaseDatabase* database, const LeaseRequest& request,
                              const Deadline& deadline);

// As acquire_lease_for, after resume_lease_for if it is to resume (lease/notify.cpp). Sets the
// ticket of a caller that was refused, else 0. Raises 53400 when there is no room for it.
LeaseAnswer acquire_or_ask(LeaseDatabase* database, const LeaseRequest& request,
                           const Deadline& deadline, int64* ticket);

// Ends the holder's tickets for the key (lease/notify.cpp), of roles that the caller acts for.
// Whether there were any.
bool withdraw_tickets(LeaseDatabase* database, const LeaseKey& key, std::string_view holder);

// Whether the lease was held.
bool release_lease_of(LeaseDatabase* database, const LeaseKey& key, int64 token);

struct HeldToken {
    int64 token; // or the number of a ticket
    Oid role;
};

// The holder's leases at the key, of roles that the caller acts for: a list of HeldToken. Leaves
// out, with a warning, those that were granted to others of that name (lease/named_grant.h).
List* tokens_of_name(LeaseDatabase* database, const LeaseKey& key, std::string_view holder);

// Ends the lease, but for its record. Whether it was there.
bool end_lease_of(LeaseDatabase* database, const LeaseKey& key, int64 token, LeaseEnd how);

// Runs body(Ref) under the partition's lock; 0: there is no lease with that token.
template <typename Body>
void with_lease(const LeaseKey& key, int64 token, Body&& body) {
    LWLock* lock = partition_lock(key.partition);
    LWLockAcquire(lock, LW_EXCLUSIVE);
    body(find_lease(find_node(key), token));
    LWLockRelease(lock);
}

// --- Records of long leases (lease/long_lease.cpp)
// ---------------------------------------------------

// R9: makes the lease durable by a record of its own, and gives it `ttl` from then on. The new
// expiry, not before `earliest`; 0: the lease is over, as it was broken, or expired meanwhile while
// another client waited for it. One without an earlier expiry (0) is new: it is released when the
// wait for the standbys is canceled, which raises 57014.
int64 record_lease(LeaseDatabase* database, const LeaseKey& key, int64 token, int64 ttl,
                   int64 earliest);

// Only the record, of a lease that lasts until `until` at least. kOver: the lease is over;
// kCanceled: the wait for the standbys was canceled.
enum class RecordWrite { kDone, kOver, kCanceled };
RecordWrite write_record(LeaseDatabase* database, const LeaseKey& key, int64 token, int64 until);

// Ends a lease that was not returned to any client, and clears its record without a wait: it is
// cleared again before anything in its way is granted.
void give_back_recorded(LeaseDatabase* database, const LeaseKey& key, int64 token);

// How much longer than the ttl a record lasts: more than writing it normally takes.
constexpr int64 kRecordReserve = USECS_PER_SEC;

// Clears the records of the partition's leases that are over, which ends them.
void clear_records(LeaseDatabase* database, int partition);

// The same for what a lease of the mode at the key waits for, with what is expired in its way: many
// of them at once. With no lock held.
void clear_records_in_the_way(LeaseDatabase* database, const LeaseKey& key, LeaseMode mode);

// Drops ended leases, to free memory.
void make_room(LeaseDatabase* database);

// --- Claims (lease/acquire.cpp) ------------------------------------------------------------------

// Frees memory when there was no room for a lease of the role, with no lock held, before the next
// attempt: superusers become privileged, then expired leases are dropped. Raises 53400 when all of
// that was tried.
struct RoomSearch {
    LeaseAccess access = LeaseAccess::kOrdinary;
    bool has_dropped = false;
};
void find_room(LeaseDatabase* database, LeaseRoom room, Oid role, RoomSearch* search);

// Locks the partition and makes a claim that uses its key and has a lease of its own. Raises 53400
// when there is no room.
void lock_and_claim(LeaseDatabase* database, const LeaseRequest& request, LeaseClaim* claim);
void drop_claim(const LeaseClaim& claim); // with the lock held
[[noreturn]] void raise_no_room(LeaseRoom room, Oid role);

// --- What a transaction or a session holds (lease/assertion.cpp)
// ---------------------------------------

// Pins the lease: nothing that it excludes is granted until the transaction has ended. False: it is
// not held.
bool pin_lease(const LeaseKey& key, int64 token);

// Whether the current transaction has pinned the lease with that token.
bool has_pinned_token(int64 token);

bool has_pins();

// Whether the current transaction has pinned the key or an ancestor, in mode exclusive.
bool has_pinned(const char* key, size_t length);

// Ends leases with the session. To be called before their grant.
void prepare_to_bind(int count);
void bind_lease(const LeaseKey& key, int64 token);
void forget_bound_lease(int64 token);

// Requests the shared memory and defines the setting of its size.
void preload_leases();

} // namespace interlock::lease

// The state of leases in each database: what is durably reserved, and since when leases are
// granted. docs/internals/leases.md has the rules R1 to R12.
#pragma once

#include "lease/store.h"

namespace interlock::lease {

// The settings interlock.max_lease_ttl and lease_durable_after, in seconds.
extern int max_lease_ttl;
extern int lease_durable_after;
void define_lease_settings();

inline int64 longest_short_lease() { return lease_durable_after * USECS_PER_SEC; }

// The number of wrong tokens that a role has tried.
struct WrongTokens {
    Oid role;
    uint32 count;
};
constexpr int kMaxGuessers = 127;

// It is in shared memory and never moved. Durable values only grow.
struct LeaseDatabase {
    Oid database;
    bool loaded; // the store was read
    bool saved;  // leases from before a clean stop are in memory; they belong to this run:
    uint64 saved_run;
    uint64 found_run; // R12: the run that had written the store before this one
    uint64 run;
    SipKey secret;                // for tokens; set when loaded
    pg_atomic_uint64 serves_from; // R2: no new lease is granted before; end_grace() lowers it
    pg_atomic_uint32 serves;      // R6: the epoch is durable
    pg_atomic_uint64 token_end;   // R3: tokens below it are reserved
    pg_atomic_uint64 horizon;     // R1
    int64 reclaim_from;           // R5: tokens from here up to reclaim_to can be reclaimed
    int64 reclaim_to;
    pg_atomic_uint32 free_block;    // where to search first for a free record
    pg_atomic_uint64 store_changes; // counts changes of the store, also possible ones
    pg_atomic_uint64 store_known;   // how many of these are written into it

    slock_t lock; // protects the floors and the wrong tokens
    int64 floors[kFloors];
    uint64 lost;                   // number of changes of floors
    pg_atomic_uint64 lost_durable; // R4: how many of them are durable

    WrongTokens wrong[kMaxGuessers + 1]; // in the grace; the last entry is for all other roles

    uint64 lost_in[kLeasePartitions]; // R4: the last change for each, under the partition's lock

    // On its own cache line. It is written with every grant, and the rest is only read.
    alignas(PG_CACHE_LINE_SIZE) pg_atomic_uint64 next_token;
};

inline int64 read_counter(pg_atomic_uint64* counter) {
    return static_cast<int64>(pg_atomic_read_u64(counter));
}

// Whether only leases from before the start can be had.
inline bool is_in_grace(LeaseDatabase* database, int64 now) {
    return pg_atomic_read_u32(&database->serves) == 0 && now < read_counter(&database->serves_from);
}

// Raises 55000 without preload.
void require_lease_service();

// This database, which may not be loaded yet. Raises 55000 without preload, and 25006 on a standby.
LeaseDatabase* own_database();

// R1: whether a grant or a renewal until `expires` can be answered. If not, call make_durable()
// first.
bool covers(LeaseDatabase* database, int64 expires);

// R4: whether the losses up to that number are durable.
bool knows_losses(LeaseDatabase* database, uint64 lost);

// The next token, for a lease of that role and mode at the key. 0: no token is reserved.
int64 next_token(LeaseDatabase* database, const LeaseNode& node, Oid role, LeaseMode mode);

// Makes losses durable, and reserves tokens, and time for a lease of `ttl`. With `ttl` 0 it
// reserves only tokens.
void make_durable(LeaseDatabase* database, int64 ttl);

// From now on the token of that key and role cannot be reclaimed. The partition's lock must be
// held.
void lose_token(LeaseDatabase* database, const LeaseKey& key, Oid role, int64 token);
void lose_lease(LeaseDatabase* database, const Lease& lease);

// R5: whether a token that is not in memory can be from before the crash. The second function:
// whether the role has lost it.
bool is_former_token(LeaseDatabase* database, int64 token);
bool is_lost_token(LeaseDatabase* database, const LeaseKey& key, Oid role, int64 token);

// R5: whether the role may reclaim a lease from before the crash. `genuine`: the token is valid.
// Counts wrong tokens: a role with too many of them in the grace may reclaim no lease.
bool accept_former_token(LeaseDatabase* database, Oid role, bool genuine);

// Clears records of long leases. This is durable when the function returns.
struct RecordOf {
    StorePlace place;
    int64 token;
};
void forget_long_leases(LeaseDatabase* database, const RecordOf* records, int count);

constexpr int kMaxLeaseDatabases = 512;

// The entry of any database, for leases that were saved at a stop. Null: there is no room.
LeaseDatabase* find_or_make_database(Oid oid);
inline LeaseDatabase* database_of(const Lease& lease) {
    return find_or_make_database(node_at(lease.node)->database);
}
LeaseDatabase* lease_database_number(int i); // null: there are no more

// Drops the state of databases that were dropped.
void forget_dropped_databases();

void drop_leases_of(Oid database);

// How far a horizon can be ahead of the clock.
int64 longest_span();

// Whether there is a grace, as interlock.lease_recovery says.
bool has_grace();

// Records the time at which this server alone began to grant leases: the start, or the promotion.
void begin_lease_service();
int64 service_began();

size_t lease_service_size();
void attach_lease_service(void* memory, bool found);

} // namespace interlock::lease

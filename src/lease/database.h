// The state of leases in each database: what it has reserved durably, and since when it grants.
// docs/internals/leases.md has the rules (R1 to R11) that are named here.
#pragma once

#include "lease/store.h"

namespace interlock::lease {

// The settings interlock.max_lease_ttl and lease_durable_after, in seconds.
extern int max_lease_ttl;
extern int lease_durable_after;
void define_lease_settings();

inline int64 longest_short_lease() { return lease_durable_after * USECS_PER_SEC; }

// The number of wrong tokens of a role.
struct WrongTokens {
    Oid role;
    uint32 count;
};
constexpr int kMaxGuessers = 127;

// In shared memory, and never moved. What is durable only grows.
struct LeaseDatabase {
    Oid database;
    bool loaded; // what is in the store is known
    bool saved;  // leases from before a clean stop are in memory, of this run:
    uint64 saved_run;
    uint64 run;
    SipKey secret;              // of tokens; there once it is loaded
    int64 serves_from;          // R2: no new lease before it
    pg_atomic_uint32 serves;    // R6: the epoch is durable
    pg_atomic_uint64 token_end; // R3: below it tokens are reserved
    pg_atomic_uint64 horizon;   // R1
    int64 reclaim_from;         // R5: tokens from here to below the other can be reclaimed
    int64 reclaim_to;
    pg_atomic_uint32 free_block;    // where to look first for a free record
    pg_atomic_uint64 store_changes; // the store is another than before, or may be
    pg_atomic_uint64 store_known;   // so many of them are written into it

    slock_t lock; // of the floors and the wrong tokens
    int64 floors[kFloors];
    uint64 lost;                   // changes of floors
    pg_atomic_uint64 lost_durable; // R4: so many of them are

    WrongTokens wrong[kMaxGuessers + 1]; // in the grace; the last one is for all other roles

    uint64 lost_in[kLeasePartitions]; // R4: the last change of each, under the partition's lock

    // On a cache line of its own: it is written with every grant, and the rest is read.
    alignas(PG_CACHE_LINE_SIZE) pg_atomic_uint64 next_token;
};

inline int64 read_counter(pg_atomic_uint64* counter) {
    return static_cast<int64>(pg_atomic_read_u64(counter));
}

// This database's, which may not be loaded yet. Raises 55000 without preload, 25006 on a standby.
LeaseDatabase* own_database();

// R1: whether a grant or a renewal until `expires` can be answered; else make_durable first.
bool covers(LeaseDatabase* database, int64 expires);

// R4: whether what was lost until then is durable.
bool knows_losses(LeaseDatabase* database, uint64 lost);

// The next token, for a lease of that role and mode at the key; 0: none is reserved.
int64 next_token(LeaseDatabase* database, const LeaseNode& node, Oid role, LeaseMode mode);

// Makes durable what was lost, and reserves tokens and time for a lease of `ttl`; 0: only tokens.
void make_durable(LeaseDatabase* database, int64 ttl);

// The token of a key and a role can no longer be reclaimed. With the partition's lock held.
void lose_token(LeaseDatabase* database, const LeaseKey& key, Oid role, int64 token);
void lose_lease(LeaseDatabase* database, const Lease& lease);

// R5: whether a token that is not in memory can be from before the crash, and whether the role
// has lost it.
bool is_former_token(LeaseDatabase* database, int64 token);
bool is_lost_token(LeaseDatabase* database, const LeaseKey& key, Oid role, int64 token);

// R5: whether the role may reclaim a lease from before the crash by a token that is `genuine` or
// not. Counts wrong tokens: a role with too many of them in the grace may reclaim none.
bool accept_former_token(LeaseDatabase* database, Oid role, bool genuine);

// Clears records of long leases, durably when the function returns.
struct RecordOf {
    StorePlace place;
    int64 token;
};
void forget_long_leases(LeaseDatabase* database, const RecordOf* records, int count);

constexpr int kMaxLeaseDatabases = 512;

// The entry of any database, for what was saved at a stop; null: there is no room.
LeaseDatabase* find_or_make_database(Oid oid);
inline LeaseDatabase* database_of(const Lease& lease) {
    return find_or_make_database(node_at(lease.node)->database);
}
LeaseDatabase* lease_database_number(int i); // null: there are no more

// Drops the state of databases that were dropped.
void forget_dropped_databases();

void drop_leases_of(Oid database);

// How far ahead of the clock a horizon can be.
int64 longest_span();

// As interlock.lease_recovery says.
bool has_grace();

// Records the time at which no other server grants leases any more: the start, or the promotion.
void begin_lease_service();
int64 service_began();

size_t lease_service_size();
void attach_lease_service(void* memory, bool found);

} // namespace interlock::lease

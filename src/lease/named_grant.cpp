#include "lease/named_grant.h"

namespace interlock::lease {

namespace {

struct NamedGrant {
    uint64 hash; // of the key and the name
    int64 token; // 0: none
    Oid role;
};

} // namespace

static NamedGrant grants[1024] = {};

static uint64 hash_of(const LeaseKey& key, std::string_view holder) {
    uint64 hash = hash_bytes_extended(reinterpret_cast<const unsigned char*>(holder.data()),
                                      static_cast<int>(holder.size()), 0);
    return hash_bytes_extended(reinterpret_cast<const unsigned char*>(key.bytes),
                               static_cast<int>(key.length), hash);
}

static NamedGrant* place_of(uint64 hash) { return &grants[hash % lengthof(grants)]; }

static bool is_held_still(const LeaseKey& key, int64 token) {
    LWLockAcquire(partition_lock(key.partition), LW_SHARED);
    Ref lease = find_lease(find_node(key), token);
    bool is_held = lease != 0 && !lease_at(lease)->is_given_back();
    LWLockRelease(partition_lock(key.partition));
    return is_held;
}

void note_named_grant(const LeaseKey& key, Oid role, std::string_view holder, int64 token) {
    uint64 hash = hash_of(key, holder);
    *place_of(hash) = {hash, token, role};
}

int64 last_named_token(LeaseDatabase* database, const LeaseKey& key, std::string_view holder) {
    uint64 hash = hash_of(key, holder);
    const NamedGrant& grant = *place_of(hash);
    bool is_known = grant.token != 0 && grant.hash == hash;
    if (is_known &&
        (is_lost_token(database, key, grant.role, grant.token) || is_held_still(key, grant.token)))
        return grant.token;
    return PG_INT64_MAX;
}

} // namespace interlock::lease

// The keys of leases: paths, whose levels are separated by slashes.
#pragma once

#include "server/server.h"

namespace interlock::lease {

constexpr size_t kMaxLeaseKeyBytes = 1024;
constexpr int kMaxLeaseLevels = 64;

struct LeaseKey {
    Oid database;
    const char* bytes;
    size_t length;
    size_t root; // length of the first level
    uint64 root_hash;
    int partition;
};

// The key of a valid path: it has no empty level, and is within the limits above.
LeaseKey lease_key(Oid database, const char* bytes, size_t length);

// The number of levels. Zero if one of them is empty.
int count_levels(const char* bytes, size_t length);

// The end of the level that begins at `from` or has the byte at `from`.
inline size_t end_of_level(const char* bytes, size_t length, size_t from) {
    const void* slash = memchr(bytes + from, '/', length - from);
    return slash == nullptr ? length : static_cast<const char*>(slash) - bytes;
}

// The functions below compare keys of one database.

// The order in which a call acquires several keys: level by level. So a key comes right before its
// descendants.
int compare_keys(const LeaseKey& left, const LeaseKey& right);

bool is_ancestor(const LeaseKey& key, const LeaseKey& other);
bool are_related(const LeaseKey& key, const LeaseKey& other); // one is above the other, or the same

} // namespace interlock::lease

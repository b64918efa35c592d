// The names of the keys that sessions hold or wait for, in shared memory.
//
// The lock manager knows a key as a hash of 64 bits. The registry keeps its name, for views and
// messages. It gives two names with the same hash two different tags. A name stays while a backend
// has pinned it. interlock.key_names limits the memory. Without preload there is no registry: names
// are not shown, and two names with the same hash share one lock.
//
// A role may use a share of that memory (interlock.max_key_names_per_role). A name counts once for
// each role that has pinned it, however many backends of the role have. Superusers have no such
// limit, and have a reserve.
//
// Tags are advisory locks with a separate fourth field, so pg_advisory_* cannot use them.
#pragma once

#include "server/role_usage.h"

namespace interlock::key_lock {

// kRoleApplocks: application locks of one role instead of all roles, such as "16384:resource".
enum class KeySpace : uint16 { kKeys = 0, kApplocks = 1, kIdempotency = 2, kRoleApplocks = 3 };
constexpr int kKeySpaces = 4;

inline bool is_applock(KeySpace space) {
    return space == KeySpace::kApplocks || space == KeySpace::kRoleApplocks;
}

constexpr size_t kMaxNameBytes = 1024;

struct LockName {
    KeySpace space;
    const char* bytes;
    size_t length;
    uint64 hash; // by hash_name
};

uint64 hash_name(const char* bytes, size_t length);

// Compares bytes. Keys are taken in this order.
int compare_names(const LockName& left, const LockName& right);

// What a backend must release.
struct NameEntry;
struct NamePin {
    NameEntry* entry; // null without a registry
    uint16 user;      // the place in the entry where the role's pins are counted
    UsageLine line;   // the line that was charged, if the entry does not count them
};

// Finds or adds the name, and pins it for this backend until unpin_name(). Without a registry it
// does not set *pin. kAmbiguous: a prepared transaction may have another name with the same hash.
enum class Pinned { kYes, kNoRoom, kRoleIsFull, kTooManyTwins, kAmbiguous };
Pinned pin_name(const LockName& name, LOCKTAG* tag, NamePin* pin);
void unpin_name(const NamePin& pin);

// Raises 53400 if there was no room, and 55006 if it was ambiguous.
[[noreturn]] void refuse_unpinned(const LockName& name, Pinned pinned);

// Whether the tag belongs to a key lock in this database, and to which space.
bool is_key_tag(const LOCKTAG& tag);
KeySpace space_of(const LOCKTAG& tag);

// The tag of a name if no other name has that hash.
LOCKTAG first_tag(KeySpace space, uint64 hash);

// The tag of the name, if a backend has pinned it or a prepared transaction holds it. Returns false
// if only another name with the same hash has a tag.
bool find_tag(const LockName& name, LOCKTAG* tag);

// Whether the tag was chosen because another name had the same hash.
bool is_displaced(const LOCKTAG& tag);

// Whether there is a registry.
bool knows_names();

// The name, cut after kNameShown bytes. Null if it is not known.
constexpr int kNameShown = 256;
char* name_of(const LOCKTAG& tag);

// How much of the registry is used: the number of names, the limit without the reserve for
// superusers, and the usage by role. The last is null without a registry.
struct NamesUse {
    uint32 used;
    uint32 most;
    uint32 share;
    RoleUsage* usage;
};
NamesUse names_use();

// Runs body(role, database) for each name and each role that has pinned it, with all names locked.
template <typename Body>
void for_each_name_use(Body&& body);
void visit_name_uses(void (*visit)(void* context, Oid role, Oid database), void* context);

// Requests the shared memory and defines its settings. Only if the library is preloaded.
void preload_key_names();

template <typename Body>
void for_each_name_use(Body&& body) {
    auto visit = [](void* context, Oid role, Oid database) {
        (*static_cast<std::remove_reference_t<Body>*>(context))(role, database);
    };
    visit_name_uses(visit, &body);
}

} // namespace interlock::key_lock

// The names of the keys that are held or waited for, in shared memory.
//
// The lock manager knows a key as 64 bits of hash. The registry keeps its name beside them, for
// views and messages, and gives two names with the same hash two different tags. A name is there
// while a backend has it pinned; the memory is bounded by interlock.key_names. Without preload
// there is no registry: names are not shown, and two names with the same hash share one lock.
//
// A role may use a share of that memory (interlock.max_key_names_per_role); a name counts for each
// role that has it pinned, once, however many of its backends do. Superusers have no such limit,
// and a reserve.
//
// Tags are advisory locks with a fourth field of their own: pg_advisory_* cannot reach them.
#pragma once

#include "server/role_usage.h"

namespace interlock::key_lock {

// kRoleApplocks: application locks of a role instead of all, as "16384:resource".
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

// By bytes: the order in which keys are taken.
int compare_names(const LockName& left, const LockName& right);

// What a backend has to release.
struct NameEntry;
struct NamePin {
    NameEntry* entry; // null without a registry
    uint16 user;      // where the entry counts the pins of the role
    UsageLine line;   // that was charged, if it counts them nowhere
};

// Finds or enters the name and pins it for this backend until unpin_name; without a registry it
// does not set *pin. kAmbiguous: a prepared transaction may have another name with the same hash.
enum class Pinned { kYes, kNoRoom, kRoleIsFull, kTooManyTwins, kAmbiguous };
Pinned pin_name(const LockName& name, LOCKTAG* tag, NamePin* pin);
void unpin_name(const NamePin& pin);

// Raises 53400 when there was no room, 55006 when it was ambiguous.
[[noreturn]] void refuse_unpinned(const LockName& name, Pinned pinned);

// Whether the tag is one of ours in this database, and whose.
bool is_key_tag(const LOCKTAG& tag);
KeySpace space_of(const LOCKTAG& tag);

// The tag of the only name with that hash.
LOCKTAG first_tag(KeySpace space, uint64 hash);

// The tag of the name while somebody has it pinned, or a prepared transaction holds it. False: only
// another name with the hash has one.
bool find_tag(const LockName& name, LOCKTAG* tag);

// Whether the tag was given because another name had the same hash.
bool is_displaced(const LOCKTAG& tag);

// Whether there is a registry.
bool knows_names();

// The name (its first kNameShown bytes), null when it is not known.
constexpr int kNameShown = 256;
char* name_of(const LOCKTAG& tag);

// The usage of names: how many there are, the limit without the reserve of superusers, and the
// usage by role; the last is null without a registry.
struct NamesUse {
    uint32 used;
    uint32 most;
    uint32 share;
    RoleUsage* usage;
};
NamesUse names_use();

// Runs body(role, database) for each name and role that has it pinned, with all names locked.
template <typename Body>
void for_each_name_use(Body&& body);
void visit_name_uses(void (*visit)(void* context, Oid role, Oid database), void* context);

// Requests the shared memory and defines its settings; only while the library is preloaded.
void preload_key_names();

template <typename Body>
void for_each_name_use(Body&& body) {
    auto visit = [](void* context, Oid role, Oid database) {
        (*static_cast<std::remove_reference_t<Body>*>(context))(role, database);
    };
    visit_name_uses(visit, &body);
}

} // namespace interlock::key_lock

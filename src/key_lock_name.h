// The names of the keys that are held or waited for, in shared memory.
//
// The lock manager knows a key as 64 bits of hash. The registry keeps its name beside them, for
// views and messages, and gives two names with the same hash two different tags. A name is there
// while a backend has it pinned; the memory is bounded by interlock.key_names. Without preload
// there is no registry: names are not shown, and two names with the same hash share one lock.
//
// Tags are advisory locks with a fourth field of their own: pg_advisory_* cannot reach them.
#pragma once

#include "server.h"

namespace interlock {

enum class KeySpace : uint16 { kKeys = 0, kApplocks = 1, kIdempotency = 2 };
constexpr int kKeySpaces = 3;

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

// Finds or enters the name and keeps it there for this backend until unpin_name; without a registry
// it leaves *entry alone. kAmbiguous: a prepared transaction keeps it from being told from another.
struct NameEntry;
enum class Pinned { kYes, kNoRoom, kTooManyTwins, kAmbiguous };
Pinned pin_name(const LockName& name, LOCKTAG* tag, NameEntry** entry);
void unpin_name(NameEntry* entry);

// Raises 53400 when there was no room, 55006 when it was ambiguous.
[[noreturn]] void refuse_unpinned(const LockName& name, Pinned pinned);

// Whether the tag is one of ours in this database, and whose.
bool is_key_tag(const LOCKTAG& tag);
KeySpace space_of(const LOCKTAG& tag);

// Whether the tag was given because another name had the same hash.
bool is_displaced(const LOCKTAG& tag);

// Whether there is a registry.
bool knows_names();

// The name (its first kNameShown bytes), null when it is not known.
constexpr int kNameShown = 256;
char* name_of(const LOCKTAG& tag);

// Defines the settings and asks for the memory; only while the library is preloaded.
void register_key_names();

} // namespace interlock

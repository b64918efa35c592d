// The named locks of this backend, counted by mode and owner: the lock manager's own table does not
// show these counts.
//
// An owner is the session, or the subtransaction in which the lock was taken; when that ends the
// locks go to its parent or go away, as the server does it. Session locks can also go behind our
// back (pg_advisory_unlock_all, DISCARD ALL), so these counts are checked against the lock manager
// before they are used.
#pragma once

#include "key_lock/name.h"

namespace interlock::key_lock {

enum class LockScope { kTransaction, kSession };

struct NamedLock;

// Takes of one mode for one owner.
struct LockHold {
    NamedLock* lock;
    LOCKMODE mode;       // NoLock: counts noted releases
    ResourceOwner owner; // null: the session
    int count;
    LockHold* next; // of the same lock
    dlist_node node;
};

struct NamedLock {
    LockName name;
    LOCKTAG tag;
    NamePin pin;
    LockHold* holds;
    LockHold own;    // the first of them, in use while it has a lock
    NamedLock* next; // in its chain
    dlist_node node;
};

// The lock of that name if this backend holds it or is about to. open_lock creates the entry, and
// close_lock drops it if nothing of it is held.
NamedLock* find_lock(const LockName& name);
NamedLock* open_lock(const LockName& name);
void close_lock(NamedLock* lock);

// Acquires a lock once more for the scope. Without waiting it returns false when it is not
// available; while waiting, errors (cancel, timeout, deadlock) are those of the server.
bool take_lock(NamedLock* lock, LOCKMODE mode, LockScope scope, bool wait);

// Releases it once. False when it is not held.
bool give_back_lock(NamedLock* lock, LOCKMODE mode, LockScope scope);

// Releases that are only counted until there were as many as takes (key_lock/applock.cpp). Those of
// a subtransaction that is rolled back do not count.
void note_release(NamedLock* lock, LockScope scope);
int releases_noted(const NamedLock* lock, LockScope scope);
int takes(const NamedLock* lock, LockScope scope);
void give_back_all(NamedLock* lock, LockScope scope);

// After an error while waiting: whether a session lock was granted just before the error. It counts
// as taken then.
bool was_granted_after_all(NamedLock* lock, LOCKMODE mode);

// The modes held, as a mask.
LOCKMASK held_modes(const NamedLock* lock);
LOCKMASK held_modes(const NamedLock* lock, LockScope scope);

// Runs body(NamedLock*) for every lock that is held.
template <typename Body>
void for_each_lock(Body&& body);

dlist_head* named_locks();

inline NamedLock* lock_at(dlist_node* node) {
    return reinterpret_cast<NamedLock*>(reinterpret_cast<char*>(node) - offsetof(NamedLock, node));
}

template <typename Body>
void for_each_lock(Body&& body) {
    static_assert(std::is_trivially_destructible_v<std::remove_reference_t<Body>>);
    dlist_head* locks = named_locks();
    if (dlist_is_empty(locks))
        return;
    for (dlist_node* node = locks->head.next; node != &locks->head; node = node->next)
        body(lock_at(node));
}

} // namespace interlock::key_lock

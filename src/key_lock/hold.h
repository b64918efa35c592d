// The named locks of this backend, counted by mode and owner. The lock manager's own table does not
// show these counts.
//
// An owner is the session, or the subtransaction in which the lock was taken. When the
// subtransaction ends, its locks go to its parent or are released, as in the server. Session locks
// can also be released without this code (pg_advisory_unlock_all, DISCARD ALL). So these counts are
// checked against the lock manager before they are used.
#pragma once

#include "key_lock/name.h"

namespace interlock::key_lock {

enum class LockScope { kTransaction, kSession };

struct NamedLock;

// How often one owner has taken the lock in one mode.
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
    LockHold own;    // the first hold, in use while the lock is held
    NamedLock* next; // in its chain
    dlist_node node;
};

// find_lock() returns the lock with that name if this backend holds it or is about to take it.
// open_lock() creates the entry. close_lock() drops it if the lock is not held.
NamedLock* find_lock(const LockName& name);
NamedLock* open_lock(const LockName& name);
void close_lock(NamedLock* lock);

// Acquires the lock one more time for the scope. If `wait` is false, returns false when it is not
// available. A wait can raise the server's errors (cancel, timeout, deadlock).
bool take_lock(NamedLock* lock, LOCKMODE mode, LockScope scope, bool wait);

// Releases the lock one time. Returns false if it is not held.
bool give_back_lock(NamedLock* lock, LOCKMODE mode, LockScope scope);

// Releases that are only counted until there are as many as takes (key_lock/applock.cpp). Releases
// in a subtransaction that is rolled back do not count.
void note_release(NamedLock* lock, LockScope scope);
int releases_noted(const NamedLock* lock, LockScope scope);
int takes(const NamedLock* lock, LockScope scope);
void give_back_all(NamedLock* lock, LockScope scope);

// For an error during a wait: whether a session lock was granted just before the error. It then
// counts as taken.
bool was_granted_after_all(NamedLock* lock, LOCKMODE mode);

// The held modes, as a mask.
LOCKMASK held_modes(const NamedLock* lock);
LOCKMASK held_modes(const NamedLock* lock, LockScope scope);

// Runs body(NamedLock*) for every held lock.
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

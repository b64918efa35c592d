#include "key_lock/hold.h"

#include "key_lock/prepared.h"
#include "server/scope.h"

namespace interlock::key_lock {

static MemoryContext memory = nullptr; // null before the first lock

// By the hash of their names, and all of them.
constexpr uint64 kChains = 4096;
static NamedLock* chains[kChains];
static dlist_head all_locks = DLIST_STATIC_INIT(all_locks);

static dlist_head session_holds = DLIST_STATIC_INIT(session_holds);

// Not held any more, but the server has not released them yet; linked by next.
static NamedLock* ending_locks = nullptr;

// In the order of taking, so that those of the innermost subtransaction come last.
static dlist_head transaction_holds = DLIST_STATIC_INIT(transaction_holds);

static LockHold* hold_at(dlist_node* node) {
    return reinterpret_cast<LockHold*>(reinterpret_cast<char*>(node) - offsetof(LockHold, node));
}

// Runs body(LockHold*), which may drop the hold. (The server's own loops are not C++.)
template <typename Body>
static void for_each_hold(dlist_head* holds, Body&& body) {
    if (dlist_is_empty(holds))
        return;
    for (dlist_node *node = holds->head.next, *next; node != &holds->head; node = next) {
        next = node->next;
        body(hold_at(node));
    }
}

static LockHold* find_hold(const NamedLock* lock, LOCKMODE mode, ResourceOwner owner) {
    for (LockHold* hold = lock->holds; hold != nullptr; hold = hold->next)
        if (hold->mode == mode && hold->owner == owner)
            return hold;
    return nullptr;
}

static LockHold* find_or_add_hold(NamedLock* lock, LOCKMODE mode, ResourceOwner owner) {
    LockHold* hold = find_hold(lock, mode, owner);
    if (hold != nullptr)
        return hold;
    hold = lock->own.lock == nullptr
               ? &lock->own
               : static_cast<LockHold*>(MemoryContextAlloc(memory, sizeof(LockHold)));
    *hold = {lock, mode, owner, 0, lock->holds, {}};
    lock->holds = hold;
    dlist_push_tail(owner == nullptr ? &session_holds : &transaction_holds, &hold->node);
    return hold;
}

static void drop_hold(LockHold* hold) {
    LockHold** link = &hold->lock->holds;
    while (*link != hold)
        link = &(*link)->next;
    *link = hold->next;
    dlist_delete(&hold->node);
    if (hold == &hold->lock->own)
        hold->lock = nullptr;
    else
        pfree(hold);
}

static NamedLock** chain_of(const LockName& name) { return &chains[name.hash % kChains]; }

static void unlink_lock(NamedLock* lock) {
    NamedLock** link = chain_of(lock->name);
    while (*link != lock)
        link = &(*link)->next;
    *link = lock->next;
    dlist_delete(&lock->node);
}

// The (sub)transaction ends, and the server is about to release the lock.
static void drop_hold_and_lock(LockHold* hold) {
    NamedLock* lock = hold->lock;
    drop_hold(hold);
    if (lock->holds != nullptr)
        return;
    unlink_lock(lock);
    if (lock->pin.entry == nullptr) {
        pfree(lock);
        return;
    }
    lock->next = ending_locks;
    ending_locks = lock;
}

// Whether the server still has the lock.
static bool is_real(const LockHold* hold) {
    return hold->count > 0 && hold->mode != NoLock && holds_lock(&hold->lock->tag, hold->mode);
}

static bool has_session_hold(const NamedLock* lock) {
    for (const LockHold* hold = lock->holds; hold != nullptr; hold = hold->next)
        if (hold->owner == nullptr && is_real(hold))
            return true;
    return false;
}

static bool is_lost(const LockHold* hold) {
    return hold->mode == NoLock ? !has_session_hold(hold->lock) : !is_real(hold);
}

// Drops entries of session locks that the server released by itself (DISCARD ALL and others), or
// never granted: some at the end of each transaction, in turn.
static void forget_lost_session_holds() {
    constexpr int kLooked = 16;
    for (int i = 0; i < kLooked && !dlist_is_empty(&session_holds); i++) {
        dlist_node* node = dlist_pop_head_node(&session_holds);
        dlist_push_tail(&session_holds, node);
        if (is_lost(hold_at(node)))
            drop_hold_and_lock(hold_at(node));
    }
}

static void refuse_displaced_locks() {
    for_each_hold(&transaction_holds, [](LockHold* hold) {
        if (is_displaced(hold->lock->tag))
            ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                            errmsg("cannot prepare a transaction that holds key \"%s\", whose "
                                   "hash another key has too",
                                   hold->lock->name.bytes)));
    });
}

static void store_names() {
    Relation table = dlist_is_empty(&transaction_holds) ? nullptr : open_prepared_names();
    if (table == nullptr)
        return;
    PushActiveSnapshot(GetTransactionSnapshot()); // the table has a TOAST table
    for_each_lock([&](NamedLock* lock) {
        if (held_modes(lock, LockScope::kTransaction) != 0)
            store_prepared_name(table, lock->name);
    });
    PopActiveSnapshot();
    close_prepared_names(table);
}

// The server releases or keeps the locks themselves.
static void end_transaction(XactEvent event, void*) {
    if (event == XACT_EVENT_PRE_PREPARE) {
        refuse_displaced_locks();
        store_names();
    }
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
        return;
    for_each_hold(&transaction_holds, drop_hold_and_lock);
}

// Names are known as long as their locks are held.
static void after_release(ResourceReleasePhase phase, bool, bool is_top_level, void*) {
    if (phase != RESOURCE_RELEASE_AFTER_LOCKS)
        return;
    while (ending_locks != nullptr) {
        NamedLock* lock = ending_locks;
        ending_locks = lock->next;
        unpin_name(lock->pin);
        pfree(lock);
    }
    if (is_top_level)
        forget_lost_session_holds();
}

static void end_subtransaction(SubXactEvent event, SubTransactionId, SubTransactionId, void*) {
    if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
        return;
    ResourceOwner ending = CurTransactionResourceOwner;
    ResourceOwner parent = ResourceOwnerGetParent(ending);
    dlist_node* node =
        dlist_is_empty(&transaction_holds) ? nullptr : dlist_tail_node(&transaction_holds);
    while (node != nullptr && hold_at(node)->owner == ending) {
        dlist_node* before = dlist_has_prev(&transaction_holds, node)
                                 ? dlist_prev_node(&transaction_holds, node)
                                 : nullptr;
        if (event == SUBXACT_EVENT_COMMIT_SUB)
            hold_at(node)->owner = parent;
        else
            drop_hold_and_lock(hold_at(node));
        node = before;
    }
}

static void unpin_all(int, Datum) {
    for (; ending_locks != nullptr; ending_locks = ending_locks->next)
        unpin_name(ending_locks->pin);
    for_each_lock([](NamedLock* lock) {
        if (lock->pin.entry != nullptr)
            unpin_name(lock->pin);
        lock->pin.entry = nullptr;
    });
}

static void initialize() {
    MemoryContext keys =
        AllocSetContextCreate(TopMemoryContext, "pg_interlock keys", ALLOCSET_DEFAULT_SIZES);
    RegisterXactCallback(end_transaction, nullptr);
    RegisterSubXactCallback(end_subtransaction, nullptr);
    RegisterResourceReleaseCallback(after_release, nullptr);
    before_shmem_exit(unpin_all, 0);
    memory = keys;
}

static bool same_name(const LockName& left, const LockName& right) {
    return left.hash == right.hash && left.space == right.space && compare_names(left, right) == 0;
}

static NamedLock* add_lock(const LockName& name) {
    auto* lock =
        static_cast<NamedLock*>(MemoryContextAlloc(memory, sizeof(NamedLock) + name.length + 1));
    auto* bytes = reinterpret_cast<char*>(lock + 1);
    memcpy(bytes, name.bytes, name.length);
    bytes[name.length] = '\0';
    NamedLock** chain = chain_of(name);
    *lock = {name, {}, {}, nullptr, {}, *chain, {}};
    lock->name.bytes = bytes;
    *chain = lock;
    dlist_push_tail(&all_locks, &lock->node);
    return lock;
}

static void pin_lock(NamedLock* lock, const LockName& name) {
    NamePin pin = {};
    Pinned pinned = pin_name(name, &lock->tag, &pin);
    if (pinned == Pinned::kYes) {
        lock->pin = pin;
        return;
    }
    close_lock(lock);
    refuse_unpinned(name, pinned);
}

// Releases noted of session locks that are gone.
static void drop_notes(NamedLock* lock) {
    LockHold* notes = find_hold(lock, NoLock, nullptr);
    if (notes != nullptr)
        drop_hold(notes);
}

static ResourceOwner owner_for(LockScope scope) {
    return scope == LockScope::kSession ? nullptr : CurTransactionResourceOwner;
}

static LockAcquireResult acquire(const LockHold* hold, bool wait) {
    return as_owner(hold->owner, [&] {
        return LockAcquire(&hold->lock->tag, hold->mode, hold->owner == nullptr, !wait);
    });
}

static bool release(const LockHold* hold) {
    return as_owner(hold->owner, [&] {
        return LockRelease(&hold->lock->tag, hold->mode, hold->owner == nullptr);
    });
}

static bool is_in(const LockHold* hold, LockScope scope) {
    return (hold->owner == nullptr) == (scope == LockScope::kSession);
}

dlist_head* named_locks() { return &all_locks; }

NamedLock* find_lock(const LockName& name) {
    NamedLock* lock = *chain_of(name);
    while (lock != nullptr && !same_name(lock->name, name))
        lock = lock->next;
    return lock;
}

NamedLock* open_lock(const LockName& name) {
    if (memory == nullptr)
        initialize();
    NamedLock* lock = find_lock(name);
    if (lock != nullptr)
        return lock;
    lock = add_lock(name);
    pin_lock(lock, name);
    return lock;
}

void close_lock(NamedLock* lock) {
    if (lock->holds != nullptr)
        return;
    unlink_lock(lock);
    if (lock->pin.entry != nullptr)
        unpin_name(lock->pin);
    pfree(lock);
}

// At once. Without room in the server's lock table nothing would end what is noted of it here.
static pg_noinline LockAcquireResult acquire_for_session(LockHold* hold) {
    NamedLock* lock = hold->lock;
    LockAcquireResult result = LOCKACQUIRE_NOT_AVAIL;
    PG_TRY();
    { result = acquire(hold, false); }
    PG_CATCH();
    {
        if (!is_real(hold))
            drop_hold(hold);
        close_lock(lock);
        PG_RE_THROW();
    }
    PG_END_TRY();
    return result;
}

bool take_lock(NamedLock* lock, LOCKMODE mode, LockScope scope, bool wait) {
    LockHold* hold = find_or_add_hold(lock, mode, owner_for(scope));
    if (!is_real(hold))
        hold->count = 0;
    if (scope == LockScope::kSession && !has_session_hold(lock))
        drop_notes(lock);
    LockAcquireResult result =
        scope == LockScope::kSession && !wait ? acquire_for_session(hold) : acquire(hold, wait);
    if (result == LOCKACQUIRE_NOT_AVAIL) {
        drop_hold(hold);
        return false;
    }
    hold->count++;
    return true;
}

bool give_back_lock(NamedLock* lock, LOCKMODE mode, LockScope scope) {
    LockHold* hold = lock->holds;
    while (hold != nullptr && !(hold->mode == mode && is_in(hold, scope) && is_real(hold)))
        hold = hold->next;
    if (hold == nullptr)
        return false;
    bool released = release(hold);
    hold->count = released ? hold->count - 1 : 0;
    if (hold->count == 0)
        drop_hold(hold);
    return released;
}

void note_release(NamedLock* lock, LockScope scope) {
    find_or_add_hold(lock, NoLock, owner_for(scope))->count++;
}

int releases_noted(const NamedLock* lock, LockScope scope) {
    int count = 0;
    for (const LockHold* hold = lock->holds; hold != nullptr; hold = hold->next)
        if (is_in(hold, scope) && hold->mode == NoLock)
            count += hold->count;
    return count;
}

int takes(const NamedLock* lock, LockScope scope) {
    int count = 0;
    for (const LockHold* hold = lock->holds; hold != nullptr; hold = hold->next)
        if (is_in(hold, scope) && is_real(hold))
            count += hold->count;
    return count;
}

void give_back_all(NamedLock* lock, LockScope scope) {
    for (LockHold *hold = lock->holds, *next; hold != nullptr; hold = next) {
        next = hold->next;
        if (!is_in(hold, scope))
            continue;
        for (; is_real(hold); hold->count--)
            if (!release(hold))
                break;
        drop_hold(hold);
    }
}

bool was_granted_after_all(NamedLock* lock, LOCKMODE mode) {
    LockHold* hold = find_hold(lock, mode, nullptr);
    if (hold == nullptr)
        return false;
    if (holds_lock(&lock->tag, mode)) {
        hold->count = 1;
        return true;
    }
    drop_hold(hold);
    return false;
}

LOCKMASK held_modes(const NamedLock* lock) {
    return held_modes(lock, LockScope::kSession) | held_modes(lock, LockScope::kTransaction);
}

LOCKMASK held_modes(const NamedLock* lock, LockScope scope) {
    LOCKMASK modes = 0;
    for (const LockHold* hold = lock->holds; hold != nullptr; hold = hold->next)
        if (is_in(hold, scope) && is_real(hold))
            modes |= LOCKBIT_ON(hold->mode);
    return modes;
}

} // namespace interlock::key_lock

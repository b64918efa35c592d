// interlock.lock_order: reports a transaction that takes keys out of order over several calls. One
// call is always in order; two calls are when every key of the second comes after those of the
// first, or is held already.

#include "key_lock/key_lock.h"
#include "key_lock/mode.h"

namespace interlock {

namespace {

enum LockOrder { kOrderOff, kOrderWarn, kOrderError };

int lock_order = kOrderOff;

constexpr config_enum_entry kLockOrders[] = {
    {"off", kOrderOff, false},
    {"warn", kOrderWarn, false},
    {"error", kOrderError, false},
    {nullptr, 0, false},
};

const NamedLock* last_held_key() {
    const NamedLock* last = nullptr;
    for_each_lock([&](NamedLock* lock) {
        if (lock->name.space == KeySpace::kKeys && held_modes(lock) != 0 &&
            (last == nullptr || compare_names(lock->name, last->name) > 0))
            last = lock;
    });
    return last;
}

// Whether only one session at a time can hold one of the modes: then only one can ask for more.
bool is_held_alone(LOCKMASK held) {
    for (LOCKMODE mode = AccessShareLock; mode <= MaxLockMode; mode++)
        if ((held & LOCKBIT_ON(mode)) != 0 && DoLockModesConflict(mode, mode))
            return true;
    return false;
}

void report_order(const char* what, const char* key, const char* other) {
    ereport(
        lock_order == kOrderError ? ERROR : WARNING,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg(what, key, other),
         errdetail("Two transactions that do this with the same keys can deadlock."),
         errhint("Take all keys of the transaction with one call of interlock.lock_keys, in the "
                 "strongest mode they will need.")));
}

// Below a key that is held exclusive no other session can hold anything.
bool is_below_exclusive(const LockName& name) {
    for (size_t end = 1; end < name.length; end++) {
        if (name.bytes[end] != '/')
            continue;
        LockName ancestor = {name.space, name.bytes, end, hash_name(name.bytes, end)};
        const NamedLock* lock = find_lock(ancestor);
        if (lock != nullptr && (held_modes(lock) & LOCKBIT_ON(kExclusive)) != 0)
            return true;
    }
    return false;
}

char* shown(const LockName& name) { return pnstrdup(name.bytes, name.length); }

} // namespace

void check_lock_order(const LockRequest* requests, int count) {
    if (lock_order == kOrderOff)
        return;
    const NamedLock* last = last_held_key();
    for (int i = 0; last != nullptr && i < count; i++) {
        const NamedLock* lock = find_lock(requests[i].name);
        LOCKMASK held = lock != nullptr ? held_modes(lock) : 0;
        if (covers(held, requests[i].mode) || is_below_exclusive(requests[i].name))
            continue;
        if (compare_names(requests[i].name, last->name) < 0)
            report_order("key \"%s\" is taken after key \"%s\"", shown(requests[i].name),
                         shown(last->name));
        else if (held != 0 && !is_held_alone(held))
            report_order("key \"%s\" is taken in mode %s while others can hold it too",
                         shown(requests[i].name), key_mode_name(requests[i].mode));
        else
            continue;
        return;
    }
}

void define_key_lock_settings() {
    DefineCustomEnumVariable(
        "interlock.lock_order", "What happens when a transaction takes keys out of order.", nullptr,
        &lock_order, kOrderOff, kLockOrders, PGC_USERSET, 0, nullptr, nullptr, nullptr);
}

} // namespace interlock

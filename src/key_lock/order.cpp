// interlock.lock_order: reports a transaction that takes keys out of order over several calls. One
// call is always in order; two calls are when every key of the second comes after those of the
// first, or is held already. Application locks have an order of their own.

#include "key_lock/key_lock.h"
#include "key_lock/mode.h"

namespace interlock::key_lock {

namespace {

enum LockOrder { kOrderOff, kOrderWarn, kOrderError };

} // namespace

static int lock_order = kOrderOff;

constexpr config_enum_entry kLockOrders[] = {
    {"off", kOrderOff, false},
    {"warn", kOrderWarn, false},
    {"error", kOrderError, false},
    {nullptr, 0, false},
};

static const NamedLock* last_held(KeySpace space) {
    const NamedLock* last = nullptr;
    for_each_lock([&](NamedLock* lock) {
        if (lock->name.space == space && held_modes(lock) != 0 &&
            (last == nullptr || compare_names(lock->name, last->name) > 0))
            last = lock;
    });
    return last;
}

// Whether only one session at a time can hold one of the modes: then only one can ask for more.
static bool is_held_alone(LOCKMASK held) {
    for (LOCKMODE mode = AccessShareLock; mode <= MaxLockMode; mode++)
        if ((held & LOCKBIT_ON(mode)) != 0 && DoLockModesConflict(mode, mode))
            return true;
    return false;
}

static const char* kind_of(KeySpace space) {
    return space == KeySpace::kKeys ? "key" : "application lock";
}

static void report_order(KeySpace space, const char* problem) {
    bool is_key = space == KeySpace::kKeys;
    ereport(
        lock_order == kOrderError ? ERROR : WARNING,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg_internal("%s %s", kind_of(space), problem),
         errdetail("Two transactions that do this with the same %s can deadlock.",
                   is_key ? "keys" : "resources"),
         is_key ? errhint("Take all keys of the transaction with one call of interlock.lock_keys, "
                          "in the strongest mode they will need.")
                : errhint("Get them in the order of the bytes of their names, in the strongest "
                          "mode the transaction will need.")));
}

// Below a key that is held exclusive no other session can hold anything. Names of application locks
// are no paths.
static bool is_below_exclusive(const LockName& name) {
    for (size_t end = 1; end < name.length && name.space == KeySpace::kKeys; end++) {
        if (name.bytes[end] != '/')
            continue;
        LockName ancestor = {name.space, name.bytes, end, hash_name(name.bytes, end)};
        const NamedLock* lock = find_lock(ancestor);
        if (lock != nullptr && (held_modes(lock) & LOCKBIT_ON(kExclusive)) != 0)
            return true;
    }
    return false;
}

static char* shown(const LockName& name) { return pnstrdup(name.bytes, name.length); }

static const char* mode_name(const LockRequest& request) {
    return request.name.space == KeySpace::kKeys ? key_mode_name(request.mode)
                                                 : applock_mode_name(LOCKBIT_ON(request.mode));
}

void check_lock_order(const LockRequest* requests, int count) {
    if (lock_order == kOrderOff || count == 0)
        return;
    KeySpace space = requests[0].name.space;
    const NamedLock* last = last_held(space);
    for (int i = 0; last != nullptr && i < count; i++) {
        const NamedLock* lock = find_lock(requests[i].name);
        LOCKMASK held = lock != nullptr ? held_modes(lock) : 0;
        if (covers(held, requests[i].mode) || is_below_exclusive(requests[i].name))
            continue;
        if (compare_names(requests[i].name, last->name) < 0)
            report_order(space, psprintf("\"%s\" is taken after %s \"%s\"", shown(requests[i].name),
                                         kind_of(space), shown(last->name)));
        else if (held != 0 && !is_held_alone(held))
            report_order(space, psprintf("\"%s\" is taken in mode %s while others can hold it too",
                                         shown(requests[i].name), mode_name(requests[i])));
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

} // namespace interlock::key_lock

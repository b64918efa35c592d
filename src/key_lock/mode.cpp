#include "key_lock/mode.h"

#include "server/arguments.h"

namespace interlock::key_lock {

namespace {

struct ModeNames {
    LOCKMODE mode;
    std::string_view key;
    std::string_view applock;
};

} // namespace

constexpr ModeNames kModes[] = {
    {kIntentShared, "intent_shared", "IntentShared"},
    {kShared, "shared", "Shared"},
    {kUpdate, "update", "Update"},
    {kIntentExclusive, "intent_exclusive", "IntentExclusive"},
    {kExclusive, "exclusive", "Exclusive"},
};

LOCKMODE key_mode(std::string_view name) {
    for (const ModeNames& names : kModes)
        if (names.key == name)
            return names.mode;
    refuse_value("mode", name,
                 "Use 'shared', 'update', 'exclusive', 'intent_shared' or 'intent_exclusive'. How "
                 "long to wait is given as wait => '5 s'.");
}

LOCKMODE applock_mode_named(std::string_view name) {
    for (const ModeNames& names : kModes)
        if (is_same_word(names.applock, name))
            return names.mode;
    return NoLock;
}

const char* key_mode_name(LOCKMODE mode) {
    for (const ModeNames& names : kModes)
        if (names.mode == mode)
            return names.key.data();
    return "update_intent_exclusive";
}

const char* applock_mode_name(LOCKMASK modes) {
    auto has = [modes](LOCKMODE mode) { return (modes & LOCKBIT_ON(mode)) != 0; };
    if (has(kExclusive))
        return "Exclusive";
    if (has(kIntentExclusive))
        return has(kUpdate)   ? "UpdateIntentExclusive"
               : has(kShared) ? "SharedIntentExclusive"
                              : "IntentExclusive";
    if (has(kUpdate))
        return "Update";
    if (has(kShared))
        return "Shared";
    return has(kIntentShared) ? "IntentShared" : "NoLock";
}

LOCKMODE intent_of(LOCKMODE mode) {
    return mode == kShared || mode == kIntentShared ? kIntentShared : kIntentExclusive;
}

LOCKMASK excluded_by(LOCKMODE mode) {
    LOCKMASK excluded = 0;
    for (LOCKMODE other = AccessShareLock; other <= MaxLockMode; other++)
        if (DoLockModesConflict(mode, other))
            excluded |= LOCKBIT_ON(other);
    return excluded;
}

bool covers(LOCKMASK held, LOCKMODE mode) {
    LOCKMASK excluded = 0;
    for (LOCKMODE other = AccessShareLock; other <= MaxLockMode; other++)
        if ((held & LOCKBIT_ON(other)) != 0)
            excluded |= excluded_by(other);
    return (excluded_by(mode) & ~excluded) == 0;
}

} // namespace interlock::key_lock

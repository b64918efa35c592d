// The five modes of a key lock, and the server's lock modes that stand for them.
//
// The server's conflict table contains SQL Server's compatibility matrix for these five; the
// server's own names for them mean nothing here. "+" may be held together:
//
//                      IS  S   U   IX  X
//     intent_shared    +   +   +   +   -      RowShareLock
//     shared           +   +   +   -   -      RowExclusiveLock
//     update           +   +   -   -   -      ShareUpdateExclusiveLock
//     intent_exclusive +   -   -   +   -      ShareLock
//     exclusive        -   -   -   -   -      AccessExclusiveLock
//
// A session that holds two of them excludes what either excludes: that is SQL Server's
// SharedIntentExclusive and UpdateIntentExclusive.
#pragma once

#include "server/server.h"

namespace interlock::key_lock {

constexpr LOCKMODE kIntentShared = RowShareLock;
constexpr LOCKMODE kShared = RowExclusiveLock;
constexpr LOCKMODE kUpdate = ShareUpdateExclusiveLock;
constexpr LOCKMODE kIntentExclusive = ShareLock;
constexpr LOCKMODE kExclusive = AccessExclusiveLock;

// Excludes what update and intent_exclusive exclude together, and nothing else.
constexpr LOCKMODE kUpdateIntentExclusive = ShareRowExclusiveLock;

// The mode with that name. Raises 22023 if there is none.
LOCKMODE key_mode(std::string_view name);

// The mode with that SQL Server name, in upper or lower case. NoLock if there is none.
LOCKMODE applock_mode_named(std::string_view name);

const char* key_mode_name(LOCKMODE mode);

// SQL Server's name for the modes (LOCKBIT_ON of each) that one owner holds at the same time.
const char* applock_mode_name(LOCKMASK modes);

// The mode of the ancestors of a path.
LOCKMODE intent_of(LOCKMODE mode);

// The modes that a holder of the mode excludes.
LOCKMASK excluded_by(LOCKMODE mode);

// Whether a holder of `held` already excludes everything that `mode` excludes.
bool covers(LOCKMASK held, LOCKMODE mode);

} // namespace interlock::key_lock

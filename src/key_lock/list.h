// Holders of a lock and sessions that wait for it, from the lock manager.
#pragma once

#include "key_lock/name.h"

namespace interlock::key_lock {

// The names of locks that the reader may see. Names of idempotency keys are shown to the role of
// the session or of the prepared transaction, and to members of pg_read_all_stats.
struct ShownNames {
    HTAB* prepared; // looked up when the first prepared transaction has a key
    bool has_prepared;
};
const char* shown_name(ShownNames* names, const LockInstanceData& lock);

const char* lock_mode_name(const LOCKTAG& tag, LOCKMODE mode);

// Whether the session has released the lock since the list was made.
bool is_released(const LockInstanceData& lock);

// The sessions that hold the lock or wait for it, as a JSON array of {pid, mode, waiting}, without
// the current session.
char* others_to_json(const LOCKTAG& tag);

// Whether another session excludes the mode, by a mode that it holds or waits for. A session that
// waits for the modes `held` by this session does not count.
bool is_excluded_by_others(const LOCKTAG& tag, LOCKMODE mode, LOCKMASK held);

// Whether another session or a prepared transaction holds the name in a mode that excludes `mode`.
// It takes no lock, so it cannot make a call fail that does not wait.
bool is_held_by_others(const LockName& name, LOCKMODE mode);

} // namespace interlock::key_lock

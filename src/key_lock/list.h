// Holders and waiters of a lock, from the lock manager.
#pragma once

#include "key_lock/name.h"

namespace interlock::key_lock {

// The names of locks as the reader may see them: those of idempotency keys are for the role of the
// session or of the prepared transaction, and for members of pg_read_all_stats.
struct ShownNames {
    HTAB* prepared; // looked up once a prepared transaction has a key
    bool has_prepared;
};
const char* shown_name(ShownNames* names, const LockInstanceData& lock);

const char* lock_mode_name(const LOCKTAG& tag, LOCKMODE mode);

// Whether the session has released its lock since it was listed.
bool is_released(const LockInstanceData& lock);

// The sessions that hold the tag or wait for it, as a JSON array of {pid, mode, waiting}; the
// current one is left out.
char* others_to_json(const LOCKTAG& tag);

// Whether another session excludes the mode: by a mode that it holds, or by one that it waits for,
// unless it waits for the modes `held` by this session.
bool is_excluded_by_others(const LOCKTAG& tag, LOCKMODE mode, LOCKMASK held);

// Whether another session, or a prepared transaction, holds the name in a mode that excludes
// `mode`. It takes no lock, so that a call that does not wait is not refused because of it.
bool is_held_by_others(const LockName& name, LOCKMODE mode);

} // namespace interlock::key_lock

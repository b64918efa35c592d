// Holders and waiters of a lock, from the lock manager.
#pragma once

#include "server/server.h"

namespace interlock {

// The sessions that hold the tag or wait for it, as a JSON array of {pid, mode, waiting}; the
// current one is left out.
char* others_to_json(const LOCKTAG& tag);

// Whether another session excludes the mode: by a mode that it holds, or by one that it waits for,
// unless it waits for the modes `held` by this session.
bool is_excluded_by_others(const LOCKTAG& tag, LOCKMODE mode, LOCKMASK held);

} // namespace interlock

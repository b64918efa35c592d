// Who holds a lock and who waits for it, as the lock manager has it.
#pragma once

#include "server/server.h"

namespace interlock {

// The sessions that hold the tag or wait for it, as a JSON array of {pid, mode, waiting}; the
// current one is left out.
char* others_to_json(const LOCKTAG& tag);

// Whether another session excludes the mode: by what it holds, or waits for unless what is `held`
// by this one keeps it waiting.
bool is_excluded_by_others(const LOCKTAG& tag, LOCKMODE mode, LOCKMASK held);

} // namespace interlock

// A function that the session keeps for many calls.
//
// The executor has a function's FmgrInfo for one query. What the function leaves in it (the plan of
// an SQL function that is half run, the expressions of a domain) is of no use after an error, and
// must not be met by a call from within itself. The server's own code leaves only what stays true.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

struct KeptFunction {
    FmgrInfo kept;
    bool runs_code; // of users: each call has a copy of its own
};

// For one call, or for several between which no error is caught and no code of others runs.
inline FmgrInfo* for_call(const KeptFunction& function, FmgrInfo* copy) {
    auto* kept = const_cast<FmgrInfo*>(&function.kept);
    if (!function.runs_code)
        return kept;
    fmgr_info_copy(copy, kept, CurrentMemoryContext);
    return copy;
}

} // namespace interlock::inline server

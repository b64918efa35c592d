// A function that the session keeps for many calls.
//
// The executor has a function's FmgrInfo for one query only. A function stores things in it, such
// as the plan of a half-run SQL function, or the expressions of a domain. After an error these must
// not be used, and a recursive call must not find them. Functions of the server itself store only
// things that stay valid.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

struct KeptFunction {
    FmgrInfo kept;
    bool runs_code; // it runs code of users: each call has its own copy
};

// The function for one call. It can be used for several calls if no error is caught and no code of
// others runs between them.
inline FmgrInfo* for_call(const KeptFunction& function, FmgrInfo* copy) {
    auto* kept = const_cast<FmgrInfo*>(&function.kept);
    if (!function.runs_code)
        return kept;
    fmgr_info_copy(copy, kept, CurrentMemoryContext);
    return copy;
}

} // namespace interlock::inline server

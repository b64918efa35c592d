// Looking at tables that the caller has not named: views and reports go over all of a kind. One
// that another transaction has locked, or that raises an error, costs a WARNING and its own rows.
#pragma once

#include "server/subtransaction.h"

namespace interlock {

// "could not PURPOSE of "TABLE"", as in "check the history", for a table that is still there.
void warn_unseen(Oid relid, const char* purpose, int sqlstate, const char* why);

// Runs look() in a subtransaction that is rolled back, so that its locks are released. It returns
// false when another transaction has locked the table or a part of it (server/relation_lock.h).
// False if the table could not be looked at whole: the caller has been warned.
template <typename Look>
bool peek(Oid relid, const char* purpose, Look&& look) {
    bool is_whole = false;
    ErrorData* error = attempt_if([&] {
        is_whole = look();
        return false;
    });
    if (error != nullptr)
        warn_unseen(relid, purpose, error->sqlerrcode, error->message);
    else if (!is_whole)
        warn_unseen(relid, purpose, ERRCODE_LOCK_NOT_AVAILABLE,
                    "Another transaction has locked it.");
    return error == nullptr && is_whole;
}

} // namespace interlock

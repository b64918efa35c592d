// Looking at tables that the caller has not named: views and reports go over all of a kind. One
// that another transaction has locked, or that raises an error, costs a WARNING and its own rows.
#pragma once

#include "server/subtransaction.h"

namespace interlock::inline table {

// "could not PURPOSE of "TABLE"", as in "check the history", for a table that is still there.
void warn_unseen(Oid relid, const char* purpose, int sqlstate, const char* why);

// Why a table could not be looked at whole; null: it was.
struct Unseen {
    int sqlstate;
    const char* why;
};

// Runs look() in a subtransaction that is rolled back, so that its locks are released. It returns
// false when another transaction has locked the table or a part of it (server/relation_lock.h).
template <typename Look>
Unseen look_and_release(Look&& look) {
    bool is_whole = false;
    ErrorData* error = attempt_if([&] {
        is_whole = look();
        return false;
    });
    if (error != nullptr)
        return {error->sqlerrcode, error->message};
    if (!is_whole)
        return {ERRCODE_LOCK_NOT_AVAILABLE, "Another transaction has locked it."};
    return {0, nullptr};
}

// The same. False if the table could not be looked at whole: the caller has been warned.
template <typename Look>
bool peek(Oid relid, const char* purpose, Look&& look) {
    Unseen unseen = look_and_release(look);
    if (unseen.why != nullptr)
        warn_unseen(relid, purpose, unseen.sqlstate, unseen.why);
    return unseen.why == nullptr;
}

} // namespace interlock::inline table

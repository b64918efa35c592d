// Reads tables that the caller has not named. Views and reports read all tables of a kind. If
// another transaction has locked such a table, or if it raises an error, there is a WARNING and its
// rows are left out.
#pragma once

#include "server/subtransaction.h"

namespace interlock::inline table {

// Warns: could not PURPOSE of "TABLE", such as "check the history", if the table still exists.
void warn_unseen(Oid relid, const char* purpose, int sqlstate, const char* why);

// Why a table could not be read completely. Null members: the table was read completely.
struct Unseen {
    int sqlstate;
    const char* why;
};

// Runs look() in a subtransaction that is then rolled back, so that its locks are released. look()
// returns false if another transaction has locked the table or a part of it
// (server/relation_lock.h).
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

// The same. Returns false, after a warning, if the table could not be read completely.
template <typename Look>
bool peek(Oid relid, const char* purpose, Look&& look) {
    Unseen unseen = look_and_release(look);
    if (unseen.why != nullptr)
        warn_unseen(relid, purpose, unseen.sqlstate, unseen.why);
    return unseen.why == nullptr;
}

} // namespace interlock::inline table

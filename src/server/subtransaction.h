// Work that may fail without failing the transaction.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

enum class OnCancel { kRaise, kReturn };

// A cancel by the user or a timeout, and not an error that user code raises with that SQLSTATE.
inline bool is_cancel(const ErrorData* error) {
    return error->sqlerrcode == ERRCODE_QUERY_CANCELED && error->funcname != nullptr &&
           strcmp(error->funcname, "ProcessInterrupts") == 0;
}

// A wait for a lock that has lasted for lock_timeout, likewise.
inline bool is_timeout(const ErrorData* error) {
    return error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE && error->funcname != nullptr &&
           strcmp(error->funcname, "ProcessInterrupts") == 0;
}

// Runs body() in a subtransaction, which is committed if it returns true and rolled back if it
// returns false, so that row locks it took are gone. Returns null on success; else the
// subtransaction is rolled back and the error returned, in the caller's memory context. A cancel
// (57014, also by a timeout) is raised again once it is rolled back, unless the caller wants it
// returned.
//
// Never inlined: what body() changes through references must live outside the frame that calls
// sigsetjmp.
template <typename Body>
pg_noinline ErrorData* attempt_if(Body&& body, OnCancel on_cancel = OnCancel::kRaise) {
    static_assert(std::is_trivially_destructible_v<std::remove_reference_t<Body>>);
    MemoryContext context = CurrentMemoryContext;
    ResourceOwner owner = CurrentResourceOwner;
    ErrorData* volatile error = nullptr;
    BeginInternalSubTransaction(nullptr);
    MemoryContextSwitchTo(context);
    PG_TRY();
    {
        if (body())
            ReleaseCurrentSubTransaction();
        else
            RollbackAndReleaseCurrentSubTransaction();
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(context);
        error = CopyErrorData();
        FlushErrorState();
        RollbackAndReleaseCurrentSubTransaction();
    }
    PG_END_TRY();
    MemoryContextSwitchTo(context);
    CurrentResourceOwner = owner;
    if (error != nullptr && is_cancel(error) && on_cancel == OnCancel::kRaise)
        ReThrowError(error);
    return error;
}

// As attempt_if, for a body that returns nothing: committed unless it raises an error.
template <typename Body>
ErrorData* attempt(Body&& body, OnCancel on_cancel = OnCancel::kRaise) {
    auto keep = [&body] {
        body();
        return true;
    };
    return attempt_if(keep, on_cancel);
}

} // namespace interlock::inline server

// Work that may fail without failing the transaction.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

enum class OnCancel { kRaise, kReturn };

// Whether the error is a cancel by the user or a timeout. An error that user code raises with the
// same SQLSTATE is not one.
inline bool is_cancel(const ErrorData* error) {
    return error->sqlerrcode == ERRCODE_QUERY_CANCELED && error->funcname != nullptr &&
           strcmp(error->funcname, "ProcessInterrupts") == 0;
}

// Whether a wait for a lock has exceeded lock_timeout. As above, an error of user code is not one.
inline bool is_timeout(const ErrorData* error) {
    return error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE && error->funcname != nullptr &&
           strcmp(error->funcname, "ProcessInterrupts") == 0;
}

// Runs body() in a subtransaction. If body() returns true, the subtransaction is committed and the
// result is null. If body() returns false, it is rolled back, so that the row locks it took are
// released, and the result is null. If body() raises an error, the subtransaction is rolled back
// and the error is returned, in the caller's memory context. A cancel (57014, also by a timeout) is
// raised again after the rollback, unless the caller wants it returned.
//
// Never inlined: variables that body() changes through references must live outside the frame that
// calls sigsetjmp.
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

// As attempt_if(), for a body that returns nothing. It is committed unless it raises an error.
template <typename Body>
ErrorData* attempt(Body&& body, OnCancel on_cancel = OnCancel::kRaise) {
    auto keep = [&body] {
        body();
        return true;
    };
    return attempt_if(keep, on_cancel);
}

} // namespace interlock::inline server

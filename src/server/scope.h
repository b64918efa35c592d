// Functions that run a body between two calls that belong together: open and close, connect and
// finish, switch and restore. If the body raises an error the second call is not made, except in
// with_current(). The abort of the transaction or subtransaction releases the same things. For this
// reason these are functions and not destructors.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

template <typename Body>
inline constexpr bool kIsPlainBody =
    std::is_trivially_destructible_v<std::remove_reference_t<Body>>;

// Runs body() inside an SPI connection. Memory that body() allocates is freed at the end. For a
// result that must live longer, use SPI_palloc, SPI_copytuple, or datumCopy in the caller's
// context.
template <typename Body>
void with_spi(Body&& body) {
    static_assert(kIsPlainBody<Body>);
    if (SPI_connect() != SPI_OK_CONNECT)
        elog(ERROR, "SPI_connect failed");
    body();
    SPI_finish();
}

// Runs body() with another user's rights. `flags` are SECURITY_* bits that are added to the current
// ones.
template <typename Body>
void as_user(Oid user, int flags, Body&& body) {
    static_assert(kIsPlainBody<Body>);
    Oid saved_user;
    int saved_context;
    GetUserIdAndSecContext(&saved_user, &saved_context);
    SetUserIdAndSecContext(user, saved_context | flags);
    body();
    SetUserIdAndSecContext(saved_user, saved_context);
}

// Runs body() and then restores the settings that it has set with GUC_ACTION_SAVE. If code of the
// caller in body() sets something for the session, that setting stays, as it does after the same
// plain statement. Code of other roles must run in as_restricted() (table/restricted.h).
template <typename Body>
void with_settings(Body&& body) {
    static_assert(kIsPlainBody<Body>);
    int nest = NewGUCNestLevel();
    body();
    AtEOXact_GUC(true, nest);
}

// Runs body() in `context` as the current memory context.
template <typename Body>
auto in_context(MemoryContext context, Body&& body) {
    static_assert(kIsPlainBody<Body>);
    MemoryContext saved = MemoryContextSwitchTo(context);
    auto result = body();
    MemoryContextSwitchTo(saved);
    return result;
}

// Runs body() so that `owner` owns the locks that it takes and releases. Null means the current
// owner.
template <typename Body>
auto as_owner(ResourceOwner owner, Body&& body) {
    static_assert(kIsPlainBody<Body>);
    ResourceOwner saved = CurrentResourceOwner;
    if (owner != nullptr)
        CurrentResourceOwner = owner;
    auto result = body();
    CurrentResourceOwner = saved;
    return result;
}

// Runs body() while *current, a static variable, is `value`. Restores it also after an error: an
// abort of the transaction does not know of the variable, and an error handler may continue in the
// same transaction.
//
// Never inlined: variables that body() changes through references must live outside the frame that
// calls sigsetjmp.
template <typename Value, typename Body>
pg_noinline void with_current(Value** current, Value* value, Body&& body) {
    static_assert(kIsPlainBody<Body>);
    Value* outer = *current;
    *current = value;
    PG_TRY();
    { body(); }
    PG_CATCH();
    {
        *current = outer;
        PG_RE_THROW();
    }
    PG_END_TRY();
    *current = outer;
}

// Runs body() in a memory context that is freed afterwards. It is for work that needs much more
// memory than its result. body() allocates the result in the caller's context.
template <typename Body>
void in_scratch(Body&& body) {
    static_assert(kIsPlainBody<Body>);
    MemoryContext scratch =
        AllocSetContextCreate(CurrentMemoryContext, "interlock scratch", ALLOCSET_DEFAULT_SIZES);
    MemoryContext saved = MemoryContextSwitchTo(scratch);
    body();
    MemoryContextSwitchTo(saved);
    MemoryContextDelete(scratch);
}

} // namespace interlock::inline server

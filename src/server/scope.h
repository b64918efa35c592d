// Pairs of calls that must be undone in order: open and close, connect and finish, switch and
// restore. Each runs a body between the two. When the body raises an error nothing here runs, but
// for with_current(); transaction or subtransaction abort releases the same things, which is why
// these are functions and not destructors.
#pragma once

#include "server/server.h"

namespace interlock::inline server {

template <typename Body>
inline constexpr bool kIsPlainBody =
    std::is_trivially_destructible_v<std::remove_reference_t<Body>>;

// Runs body() inside an SPI connection. What the body allocates dies with the connection: results
// that outlive it go through SPI_palloc, SPI_copytuple or datumCopy in the caller's context.
template <typename Body>
void with_spi(Body&& body) {
    static_assert(kIsPlainBody<Body>);
    if (SPI_connect() != SPI_OK_CONNECT)
        elog(ERROR, "SPI_connect failed");
    body();
    SPI_finish();
}

// Runs body() with another user's rights. `flags` are SECURITY_* bits added to the current ones.
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

// Runs body() in a nest of settings of its own: what it sets with GUC_ACTION_SAVE ends here. What
// the caller's own code in it sets for the session stays, as after the same statement by hand; code
// of others runs in as_restricted (table/restricted.h).
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

// Runs body() with the locks it takes and releases belonging to `owner`; null: to the current one.
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

// Runs body() while *current, a static variable, is `value`. An error restores it, too: abort does
// not know of it, and a handler around goes on in the same transaction.
//
// Never inlined: what body() changes through references must live outside the frame that calls
// sigsetjmp.
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

// Runs body() in a memory context that is freed behind it: for what takes much more memory than its
// result, which body() makes in the caller's own.
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

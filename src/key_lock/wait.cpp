#include "key_lock/wait.h"

#include "contention/count.h"

#include "key_lock/list.h"
#include "key_lock/mode.h"
#include "server/subtransaction.h"
#include "server/wait_log.h"

namespace interlock::key_lock {

static void name_lock_in_context(void* argument) {
    const auto* request = static_cast<const LockRequest*>(argument);
    int shown =
        pg_mbcliplen(request->name.bytes, static_cast<int>(request->name.length), kNameShown - 1);
    char* name = pnstrdup(request->name.bytes, shown);
    if (request->name.space == KeySpace::kIdempotency) {
        *strchrnul(name, '\n') = ':'; // between scope and key
        errcontext("waiting for idempotency key \"%s\"", name);
        return;
    }
    errcontext("waiting for key \"%s\" in mode %s", name, key_mode_name(request->mode));
}

// The wait for the lock, in a subtransaction that an error rolls back.
static ErrorData* wait_for(NamedLock* lock, const LockRequest& request, LockScope scope,
                           const Deadline& deadline) {
    ErrorContextCallback context = {error_context_stack, name_lock_in_context,
                                    const_cast<LockRequest*>(&request)};
    error_context_stack = &context;
    ErrorData* error = attempt(
        [&] {
            logging_lock_wait(
                [&] { deadline.bound([&] { take_lock(lock, request.mode, scope, true); }); });
            // A signal that came too late for the wait must not go off after the call.
            CHECK_FOR_INTERRUPTS();
        },
        OnCancel::kReturn);
    error_context_stack = context.previous;
    return error;
}

// Claims of idempotency keys count by their scopes.
static LineRef line_of(const LockName& name) {
    switch (name.space) {
    case KeySpace::kKeys:
        return line_of_key(CountedKind::kKey, {name.bytes, name.length});
    case KeySpace::kApplocks:
    case KeySpace::kRoleApplocks:
        return line_of_key(CountedKind::kApplock, {name.bytes, name.length});
    default:
        return {nullptr, 0};
    }
}

// Only waiters are in the way, and they wait for this session: a request that may wait overtakes
// them and is granted at once; one that may not wait is refused.
static bool goes_before_waiters(const NamedLock* lock, LOCKMODE mode) {
    LOCKMASK held = held_modes(lock);
    return held != 0 && !is_excluded_by_others(lock->tag, mode, held);
}

static Deadline shortest() { return Deadline::after_milliseconds(1); }

// Whether the lock was granted after all; if the wait ended for another reason than the timeout,
// the lock is released.
static bool timed_out_but_granted(NamedLock* lock, const LockRequest& request,
                                  const ErrorData* error) {
    if (!was_granted_after_all(lock, request.mode))
        return false;
    if (error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE)
        return true;
    give_back_lock(lock, request.mode, LockScope::kSession);
    return false;
}

Grant acquire(const LockRequest& request, LockScope scope, const Deadline& deadline,
              ErrorData** error) {
    *error = nullptr;
    NamedLock* lock = open_lock(request.name);
    if (take_lock(lock, request.mode, scope, false))
        return Grant::kAtOnce;
    bool passes = goes_before_waiters(lock, request.mode);
    LineRef line = line_of(request.name);
    if (deadline.has_passed() && !passes) {
        count(line, Counter::kConflicts);
        close_lock(lock);
        return Grant::kRefused;
    }
    instr_time start;
    INSTR_TIME_SET_CURRENT(start);
    *error = wait_for(lock, request, scope, deadline.has_passed() ? shortest() : deadline);
    if (!passes || *error != nullptr)
        count_wait(line, start, *error != nullptr ? (*error)->sqlerrcode : 0);
    if (*error == nullptr)
        return passes ? Grant::kAtOnce : Grant::kAfterWaiting;
    lock = find_lock(request.name); // the end of the subtransaction may have closed it
    if (lock == nullptr)
        return Grant::kRefused;
    if (scope == LockScope::kSession && timed_out_but_granted(lock, request, *error)) {
        elog(DEBUG1, "the wait for a key timed out and was granted");
        return Grant::kAfterWaiting;
    }
    close_lock(lock);
    return Grant::kRefused;
}

bool give_back(const LockRequest& request, LockScope scope) {
    NamedLock* lock = find_lock(request.name);
    if (lock == nullptr)
        return false;
    bool held = give_back_lock(lock, request.mode, scope);
    close_lock(lock);
    return held;
}

void take_covered(NamedLock* lock, LOCKMODE mode, LockScope scope) {
    take_lock(lock, mode, scope, true);
}

} // namespace interlock::key_lock

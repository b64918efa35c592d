// Application locks as SQL Server's sp_getapplock has them: its modes, its owners, its codes.
//
// They have a space of names of their own, in which '/' means nothing. No refusal raises an error:
// errors are caught in a subtransaction and returned as the code, and the transaction continues. A
// warning says what is wrong with a bad call. Only interlock.lock_order = 'error' raises one.
// Differences: a database principal is a role; the two owners of one session never exclude each
// other; outside of a transaction block a lock of the owner Transaction ends with the statement.

#include "contention/count.h"
#include "key_lock/key_lock.h"
#include "key_lock/list.h"
#include "key_lock/mode.h"
#include "server/arguments.h"
#include "server/lone_call.h"

namespace interlock::key_lock {

constexpr int32 kGranted = 0;
constexpr int32 kGrantedAfterWaiting = 1;
constexpr int32 kTimedOut = -1;
constexpr int32 kCanceled = -2;
constexpr int32 kDeadlock = -3;
constexpr int32 kBadCall = -999;

constexpr int32 kReleased = 0;

constexpr const char* kModeHint =
    "Modes are Shared, Update, IntentShared, IntentExclusive and Exclusive.";
constexpr const char* kOwnerHint = "Owners are Transaction and Session.";

constexpr const char* kPrincipalHint =
    "Use 'public', or a role that the user of the session is a member of.";

namespace {

// Whose names the resource is one of: those of all ('public'), or of one role.
struct Principal {
    const char* name;
    Oid role;  // InvalidOid: public
    int error; // 0, or the SQLSTATE
};

struct ApplockCall {
    Principal principal;
    LOCKMODE mode;
    LockScope scope;
    int32 timeout; // milliseconds, -1 for ever
};

} // namespace

static Principal principal_named(char* name);
static Principal principal_argument(const Arguments& arguments, int n);
static LockName resource_name(Datum resource, const Principal& principal);
static bool owner_named(std::string_view name, LockScope* scope);
static bool read_call(const Arguments& arguments, ApplockCall* call);
static LockScope owner_argument(const Arguments& arguments, int n);
static int32 code_of(Grant grant, ErrorData* error);

extern "C" {
PG_FUNCTION_INFO_V1(getapplock);
PG_FUNCTION_INFO_V1(releaseapplock);
PG_FUNCTION_INFO_V1(applock_mode);
PG_FUNCTION_INFO_V1(applock_test);

// getapplock(resource, lockmode, lockowner, locktimeout, dbprincipal)
Datum getapplock(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    ApplockCall call;
    if (!read_call(arguments, &call))
        PG_RETURN_INT32(kBadCall);

    LockRequest request = {resource_name(arguments.value(0), call.principal), call.mode};
    count(line_of_key(CountedKind::kApplock, {request.name.bytes, request.name.length}),
          Counter::kCalls);
    if (call.timeout != 0)
        check_lock_order(&request, 1);
    ErrorData* error;
    Grant grant = acquire(request, call.scope, Deadline::after_milliseconds(call.timeout), &error);
    int32 code = code_of(grant, error);
    if (code >= 0 && call.scope == LockScope::kTransaction)
        warn_if_alone(fcinfo, "the lock is already released",
                      "Call the function after BEGIN, in the transaction that the lock is to "
                      "protect, or give the lock owner 'Session'.");
    PG_RETURN_INT32(code);
}

// releaseapplock(resource, lockowner, dbprincipal)
Datum releaseapplock(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LockScope scope;
    if (arguments.is_null(0) || arguments.is_null(1) || arguments.is_null(2) ||
        !owner_named(arguments.view(1, "lockowner"), &scope))
        PG_RETURN_INT32(kBadCall);
    // What the session holds it may release, whatever roles it has now.
    Principal principal = principal_named(arguments.string(2, "dbprincipal"));
    if (principal.error == ERRCODE_UNDEFINED_OBJECT)
        PG_RETURN_INT32(kBadCall);
    NamedLock* lock = find_lock(resource_name(arguments.value(0), principal));
    if (lock == nullptr || held_modes(lock, scope) == 0)
        PG_RETURN_INT32(kBadCall);
    // Every mode stays held until there were as many releases as gets.
    note_release(lock, scope);
    if (releases_noted(lock, scope) >= takes(lock, scope)) {
        give_back_all(lock, scope);
        close_lock(lock);
    }
    PG_RETURN_INT32(kReleased);
}

// applock_mode(dbprincipal, resource, lockowner)
Datum applock_mode(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Principal principal = principal_argument(arguments, 0);
    LockName name = resource_name(arguments.required(1, "resource"), principal);
    LockScope scope = owner_argument(arguments, 2);
    NamedLock* lock = find_lock(name);
    LOCKMASK held = lock != nullptr ? held_modes(lock, scope) : 0;
    PG_RETURN_TEXT_P(cstring_to_text(applock_mode_name(held)));
}

// applock_test(dbprincipal, resource, lockmode, lockowner)
Datum applock_test(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Principal principal = principal_argument(arguments, 0);
    LockName name = resource_name(arguments.required(1, "resource"), principal);
    char* mode_name = arguments.string(2, "lockmode");
    LOCKMODE mode = applock_mode_named(mode_name);
    (void)owner_argument(arguments, 3);
    if (mode == NoLock)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("unknown lock mode \"%s\"", mode_name), errhint("%s", kModeHint)));
    NamedLock* lock = open_lock(name);
    LOCKMASK held = held_modes(lock);
    bool free = covers(held, mode) || !is_excluded_by_others(lock->tag, mode, held);
    close_lock(lock);
    PG_RETURN_INT32(free ? 1 : 0);
}
}

// The caller has to be a member of the role.
static Principal principal_named(char* name) {
    if (is_same_word(name, "public"))
        return {name, InvalidOid, 0};
    Oid role = get_role_oid(name, true);
    if (!OidIsValid(role))
        return {name, role, ERRCODE_UNDEFINED_OBJECT};
    return {name, role, has_privs_of_role(GetUserId(), role) ? 0 : ERRCODE_INSUFFICIENT_PRIVILEGE};
}

static const char* message_of(const Principal& principal) {
    return principal.error == ERRCODE_UNDEFINED_OBJECT
               ? psprintf("role \"%s\" does not exist", principal.name)
               : psprintf("must be a member of role \"%s\"", principal.name);
}

static Principal principal_argument(const Arguments& arguments, int n) {
    Principal principal = principal_named(arguments.string(n, "dbprincipal"));
    if (principal.error != 0)
        ereport(ERROR, (errcode(principal.error), errmsg_internal("%s", message_of(principal)),
                        errhint("%s", kPrincipalHint)));
    return principal;
}

// Cut to 255 characters, as SQL Server does.
static LockName resource_name(Datum resource, const Principal& principal) {
    constexpr int kMaxCharacters = 255;
    const text* value = DatumGetTextPP(resource);
    const char* bytes = VARDATA_ANY(value);
    int length = pg_mbcharcliplen(bytes, VARSIZE_ANY_EXHDR(value), kMaxCharacters);
    LockName name = {KeySpace::kApplocks, bytes, static_cast<size_t>(length), 0};
    if (OidIsValid(principal.role)) {
        name.space = KeySpace::kRoleApplocks;
        name.bytes = psprintf("%u:%.*s", principal.role, length, bytes);
        name.length = strlen(name.bytes);
    }
    name.hash = hash_name(name.bytes, name.length);
    return name;
}

static bool owner_named(std::string_view name, LockScope* scope) {
    bool is_session = is_same_word(name, "Session");
    *scope = is_session ? LockScope::kSession : LockScope::kTransaction;
    return is_session || is_same_word(name, "Transaction");
}

static bool warn_of_call(const char* message, const char* hint) {
    ereport(WARNING, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg_internal("%s", message),
                      errhint("%s", hint)));
    return false;
}

static bool warn_of_mode(const char* resource, const char* mode) {
    const char* message = psprintf("unknown lock mode \"%s\"", mode);
    if (applock_mode_named(resource) == NoLock)
        return warn_of_call(message, kModeHint);
    return warn_of_call(message, psprintf("The resource comes first: interlock.getapplock(%s, %s).",
                                          quote_literal_cstr(mode), quote_literal_cstr(resource)));
}

// False, after a warning, for what no lock can be asked for with.
static bool read_call(const Arguments& arguments, ApplockCall* call) {
    PreventCommandIfParallelMode("interlock.getapplock()"); // as for lock_key()
    constexpr const char* kNames[] = {"resource", "lockmode", "lockowner", "locktimeout",
                                      "dbprincipal"};
    for (int i = 0; i < static_cast<int>(lengthof(kNames)); i++)
        if (arguments.is_null(i))
            return warn_of_call(psprintf("argument \"%s\" must not be null", kNames[i]),
                                "Call interlock.getapplock(resource, lockmode), or with lockowner, "
                                "locktimeout and dbprincipal, too.");
    char* mode = arguments.string(1, "lockmode");
    char* owner = arguments.string(2, "lockowner");
    call->mode = applock_mode_named(mode);
    call->timeout = DatumGetInt32(arguments.value(3));
    if (call->mode == NoLock)
        return warn_of_mode(arguments.string(0, "resource"), mode);
    if (!owner_named(owner, &call->scope))
        return warn_of_call(psprintf("unknown lock owner \"%s\"", owner), kOwnerHint);
    if (call->timeout < -1)
        return warn_of_call(psprintf("locktimeout must not be %d", call->timeout),
                            "Give milliseconds, or -1 to wait for ever.");
    call->principal = principal_named(arguments.string(4, "dbprincipal"));
    return call->principal.error == 0 || warn_of_call(message_of(call->principal), kPrincipalHint);
}

static LockScope owner_argument(const Arguments& arguments, int n) {
    char* name = arguments.string(n, "lockowner");
    LockScope scope;
    if (!owner_named(name, &scope))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("unknown lock owner \"%s\"", name), errhint("%s", kOwnerHint)));
    return scope;
}

static int32 code_of(Grant grant, ErrorData* error) {
    if (grant != Grant::kRefused)
        return grant == Grant::kAtOnce ? kGranted : kGrantedAfterWaiting;
    switch (error != nullptr ? error->sqlerrcode : ERRCODE_LOCK_NOT_AVAILABLE) {
    case ERRCODE_LOCK_NOT_AVAILABLE:
        return kTimedOut;
    case ERRCODE_QUERY_CANCELED:
        return kCanceled;
    case ERRCODE_T_R_DEADLOCK_DETECTED:
        return kDeadlock;
    default:
        ReThrowError(error);
    }
    return kBadCall;
}

} // namespace interlock::key_lock

#include "key_lock/key_lock.h"

#include "contention/count.h"
#include "key_lock/list.h"
#include "key_lock/mode.h"
#include "server/arguments.h"
#include "server/error.h"
#include "server/lone_call.h"
#include "server/subtransaction.h"

namespace interlock::key_lock {

namespace {

struct KeyCall {
    LockRequest* requests; // in the order of taking
    int count;
    LockScope scope;
    Deadline deadline;
    int taken = 0;
    const LockRequest* refused = nullptr;
    ErrorData* error = nullptr; // why it was refused; null: no time was left
};

struct Keys {
    LockName* names; // distinct, in order
    int count;
    size_t levels; // of all of them together
};

// The place of a few requests of a call.
struct FewRequests {
    LockRequest requests[4];
};

} // namespace

static size_t count_levels(const LockName& name);
static LockName key_argument(const Arguments& arguments, int n);
static Keys keys_argument(const Arguments& arguments, int n);
static KeyCall read_call(const Arguments& arguments, const Keys& keys, FewRequests* few);
static void count_calls(const Keys& keys);
static bool take_all(KeyCall* call);
static bool take_in_time(KeyCall* call);
[[noreturn]] static void raise_refused(const KeyCall& call);
static bool unlock(const LockName& key, LOCKMODE mode);
static LOCKMODE mode_argument(const Arguments& arguments, int n);

static void lock_or_raise(KeyCall* call, FunctionCallInfo fcinfo) {
    if (!take_all(call))
        raise_refused(*call);
    if (call->scope == LockScope::kTransaction)
        warn_if_alone(fcinfo, "the lock is already released",
                      "Call the function after BEGIN, in the transaction that the lock is to "
                      "protect, or give scope => 'session'.");
}

extern "C" {

PG_FUNCTION_INFO_V1(lock_key);
PG_FUNCTION_INFO_V1(lock_keys);
PG_FUNCTION_INFO_V1(try_lock_key);
PG_FUNCTION_INFO_V1(try_lock_keys);
PG_FUNCTION_INFO_V1(unlock_key);
PG_FUNCTION_INFO_V1(unlock_keys);

// lock_key(key, mode, wait, scope)
Datum lock_key(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LockName key = key_argument(arguments, 0);
    FewRequests few;
    KeyCall call = read_call(arguments, {&key, 1, count_levels(key)}, &few);
    lock_or_raise(&call, fcinfo);
    PG_RETURN_VOID();
}

// lock_keys(keys, mode, wait, scope)
Datum lock_keys(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    FewRequests few;
    KeyCall call = read_call(arguments, keys_argument(arguments, 0), &few);
    lock_or_raise(&call, fcinfo);
    PG_RETURN_VOID();
}

// try_lock_key(key, mode, wait, scope)
Datum try_lock_key(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LockName key = key_argument(arguments, 0);
    FewRequests few;
    KeyCall call = read_call(arguments, {&key, 1, count_levels(key)}, &few);
    PG_RETURN_BOOL(take_in_time(&call));
}

// try_lock_keys(keys, mode, wait, scope)
Datum try_lock_keys(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    FewRequests few;
    KeyCall call = read_call(arguments, keys_argument(arguments, 0), &few);
    PG_RETURN_BOOL(take_in_time(&call));
}

// unlock_key(key, mode)
Datum unlock_key(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LockName key = key_argument(arguments, 0);
    PG_RETURN_BOOL(unlock(key, mode_argument(arguments, 1)));
}

// unlock_keys(keys, mode)
Datum unlock_keys(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    Keys keys = keys_argument(arguments, 0);
    LOCKMODE mode = mode_argument(arguments, 1);
    bool all = true;
    for (int i = 0; i < keys.count; i++)
        all = unlock(keys.names[i], mode) && all;
    PG_RETURN_BOOL(all);
}
}

// --- Arguments -----------------------------------------------------------------------------------

constexpr size_t kMaxLevels = 64;

static size_t count_levels(const LockName& name) {
    size_t levels = 1;
    for (size_t i = 1; i < name.length; i++)
        levels += name.bytes[i] == '/';
    return levels;
}

static LockName make_name(const text* key, int element = 0) {
    LockName name = {KeySpace::kKeys, VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key), 0};
    if (name.length == 0)
        refuse_empty(name_of_key(element));
    if (count_levels(name) > kMaxLevels)
        refuse_argument(name_of_key(element),
                        psprintf("must not have more than %zu levels", kMaxLevels));
    if (name.length > kMaxNameBytes)
        refuse_long(name_of_key(element), kMaxNameBytes,
                    "Give a digest of it, for example md5(key).");
    name.hash = hash_name(name.bytes, name.length);
    return name;
}

// An array may have a hundred million.
static int order_of_names(const void* left, const void* right) {
    CHECK_FOR_INTERRUPTS();
    return compare_names(*static_cast<const LockName*>(left), *static_cast<const LockName*>(right));
}

static LockName key_argument(const Arguments& arguments, int n) {
    return make_name(DatumGetTextPP(arguments.required(n, "key")));
}

static Keys keys_argument(const Arguments& arguments, int n) {
    ArrayType* array = DatumGetArrayTypeP(arguments.required(n, "keys"));
    Datum* values;
    bool* nulls;
    int count;
    deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &count);
    Keys keys = {static_cast<LockName*>(
                     MemoryContextAllocHuge(CurrentMemoryContext, sizeof(LockName) * (count + 1))),
                 0, 0};
    for (int i = 0; i < count; i++) {
        CHECK_FOR_INTERRUPTS();
        if (nulls[i])
            refuse_nulls("keys", "array_remove(keys, NULL) leaves nulls out.");
        keys.names[i] = make_name(DatumGetTextPP(values[i]), i + 1);
    }
    qsort(keys.names, count, sizeof(LockName), order_of_names);
    for (int i = 0; i < count; i++) {
        if (i > 0 && order_of_names(&keys.names[keys.count - 1], &keys.names[i]) == 0)
            continue;
        keys.names[keys.count++] = keys.names[i];
        keys.levels += count_levels(keys.names[i]);
    }
    return keys;
}

static LOCKMODE mode_argument(const Arguments& arguments, int n) {
    return key_mode(arguments.view(n, "mode"));
}

static LockScope scope_argument(const Arguments& arguments, int n) {
    std::string_view scope = arguments.view(n, "scope");
    if (scope == "transaction")
        return LockScope::kTransaction;
    if (scope == "session")
        return LockScope::kSession;
    refuse_value("scope", scope, "Use 'transaction' or 'session'.");
}

// --- What a call takes ---------------------------------------------------------------------------

// Runs body(name, mode) for the ancestors of a key that is taken in the mode.
template <typename Body>
static void for_each_ancestor(const LockName& key, LOCKMODE mode, Body&& body) {
    for (size_t end = 1; end < key.length; end++)
        if (key.bytes[end] == '/') {
            LockName ancestor = key;
            ancestor.length = end;
            ancestor.hash = hash_name(key.bytes, end);
            body(ancestor, intent_of(mode));
        }
}

static bool is_ancestor(const LockName& name, const LockName& other) {
    return other.length > name.length && other.bytes[name.length] == '/' &&
           memcmp(name.bytes, other.bytes, name.length) == 0;
}

static bool has_descendant(const Keys& keys, int i) {
    const LockName& key = keys.names[i];
    for (int k = i + 1; k < keys.count; k++) {
        const LockName& next = keys.names[k];
        if (next.length < key.length || memcmp(key.bytes, next.bytes, key.length) != 0)
            return false;
        if (is_ancestor(key, next))
            return true;
    }
    return false;
}

// By name; of one name the mode that excludes most first, so that the others are covered.
static int order_of_requests(const void* left, const void* right) {
    CHECK_FOR_INTERRUPTS();
    const auto* a = static_cast<const LockRequest*>(left);
    const auto* b = static_cast<const LockRequest*>(right);
    int order = compare_names(a->name, b->name);
    if (order != 0)
        return order;
    order = pg_popcount32(excluded_by(b->mode)) - pg_popcount32(excluded_by(a->mode));
    return order != 0 ? order : b->mode - a->mode;
}

// Runs body(name, mode) for all that the call takes. A key in mode update that is an ancestor of
// another gets intent_exclusive too: neither covers the other, and taking one after the other could
// deadlock. The mode that covers both goes first.
template <typename Body>
static void for_each_request(const Keys& keys, LOCKMODE mode, Body&& body) {
    for (int i = 0; i < keys.count; i++) {
        CHECK_FOR_INTERRUPTS();
        for_each_ancestor(keys.names[i], mode, body);
        body(keys.names[i], mode);
        if (mode == kUpdate && has_descendant(keys, i))
            body(keys.names[i], kUpdateIntentExclusive);
    }
}

// The locks of a parallel worker, in which a function runs that is wrongly said to be safe there,
// end with it.
static KeyCall read_call(const Arguments& arguments, const Keys& keys, FewRequests* few) {
    PreventCommandIfParallelMode("interlock.lock_key()");
    LOCKMODE mode = mode_argument(arguments, 1);
    count_calls(keys);
    KeyCall call = {few->requests, 0, scope_argument(arguments, 3),
                    Deadline::argument(arguments, 2)};
    size_t most = keys.levels + keys.count;
    if (most > lengthof(few->requests))
        call.requests =
            static_cast<LockRequest*>(palloc_extended(sizeof(LockRequest) * most, MCXT_ALLOC_HUGE));
    for_each_request(keys, mode, [&](const LockName& name, LOCKMODE level_mode) {
        call.requests[call.count++] = {name, level_mode};
    });
    if (call.count > 1)
        qsort(call.requests, call.count, sizeof(LockRequest), order_of_requests);
    return call;
}

static void count_calls(const Keys& keys) {
    for (int i = 0; i < keys.count; i++)
        count(line_of_key(CountedKind::kKey, {keys.names[i].bytes, keys.names[i].length}),
              Counter::kCalls);
}

// --- Acquiring and releasing ---------------------------------------------------------------------

static bool take(KeyCall* call, const LockRequest& request) {
    NamedLock* lock = find_lock(request.name);
    if (lock != nullptr && covers(held_modes(lock), request.mode)) {
        take_covered(lock, request.mode, call->scope);
        return true;
    }
    return acquire(request, call->scope, call->deadline, &call->error) != Grant::kRefused;
}

static void give_back_taken(KeyCall* call) {
    while (call->taken > 0)
        give_back(call->requests[--call->taken], call->scope);
}

static void give_back_covers(const KeyCall& call) {
    for (int i = 0; i < call.count; i++)
        if (call.requests[i].mode == kUpdateIntentExclusive)
            give_back(call.requests[i], call.scope);
}

// All or none, also when an error is raised.
static pg_noinline bool take_all(KeyCall* call) {
    if (!call->deadline.has_passed())
        check_lock_order(call->requests, call->count);
    PG_TRY();
    {
        while (call->taken < call->count && take(call, call->requests[call->taken]))
            call->taken++;
    }
    PG_CATCH();
    {
        give_back_taken(call);
        PG_RE_THROW();
    }
    PG_END_TRY();
    if (call->taken == call->count) {
        give_back_covers(*call);
        return true;
    }
    call->refused = &call->requests[call->taken];
    give_back_taken(call);
    return false;
}

// As take_all, and false also when a lock is not available in time.
static bool take_in_time(KeyCall* call) {
    bool taken = take_all(call);
    if (!taken && call->error != nullptr && call->error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
        ReThrowError(call->error);
    return taken;
}

// The ancestors go with the key, and only with it.
static bool unlock(const LockName& key, LOCKMODE mode) {
    if (!give_back({key, mode}, LockScope::kSession))
        return false;
    for_each_ancestor(key, mode, [&](const LockName& ancestor, LOCKMODE intent) {
        give_back({ancestor, intent}, LockScope::kSession);
    });
    return true;
}

[[noreturn]] static void raise_refused(const KeyCall& call) {
    if (call.error != nullptr && call.error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
        ReThrowError(call.error);
    const LockRequest& request = *call.refused;
    NamedLock* lock = open_lock(request.name);
    char* others = others_to_json(lock->tag);
    close_lock(lock);
    char* key = pnstrdup(request.name.bytes, request.name.length);
    const char* mode = key_mode_name(request.mode);
    ereport(ERROR,
            (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
             errmsg("could not lock key \"%s\" in mode %s", key, mode),
             errdetail_internal(
                 "%s", json_object({{"key", key}, {"mode", mode}, {"others", nullptr, others}})),
             errhint("Try again later, or give a longer wait.")));
}

} // namespace interlock::key_lock

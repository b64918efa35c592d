// acquire_leases: several keys, all of them or none.

#include "lease/argument.h"
#include "lease/lease.h"
#include "lease/named_grant.h"
#include "server/arguments.h"
#include "server/client.h"
#include "server/result_row.h"

namespace interlock::lease {

namespace {

struct Many {
    LeaseDatabase* database;
    LeaseRequest* requests; // in the order of their keys
    int* position;          // of each, in the order they were given in; several for one key
    int64* tokens;          // in the order of requests; 0: not granted
    int count;
    int given;
    LeaseBond bond; // of the leases when the call has ended
    bool resumes;
    int refused; // the request that stopped the call
};

} // namespace

static Many read_many(const Arguments& arguments, LeaseDatabase* database);
static LeaseAnswer acquire_all(Many* many, const Deadline& deadline);
static bool resume_all(Many* many, LeaseAnswer* answer);
static void count_answers(const Many& many, const LeaseAnswer& answer);
static Datum many_result(FunctionCallInfo fcinfo, const Many& many, const LeaseAnswer& answer);

extern "C" {
PG_FUNCTION_INFO_V1(acquire_leases);

// acquire_leases(keys, ttl, wait, holder, mode, bind, resume)
Datum acquire_leases(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LeaseDatabase* database = lease_database();
    Many many = read_many(arguments, database);
    Deadline deadline = Deadline::argument(arguments, 2);
    LeaseAnswer answer = {};
    if (many.count > 0 && !(many.resumes && resume_all(&many, &answer)))
        answer = acquire_all(&many, deadline);
    if (many.resumes && answer.outcome == LeaseOutcome::kHeld)
        (void)resume_all(&many, &answer); // another call of the holder has acquired them meanwhile
    count_answers(many, answer);
    return many_result(fcinfo, many, answer);
}
}

// --- Arguments -----------------------------------------------------------------------------------

static int order_of_paths(const void* left, const void* right, void* keys) {
    const auto& a = static_cast<LeaseKey*>(keys)[*static_cast<const int*>(left)];
    const auto& b = static_cast<LeaseKey*>(keys)[*static_cast<const int*>(right)];
    return compare_keys(a, b);
}

[[noreturn]] static void raise_overlap(const LeaseKey& key, const LeaseKey& other) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("key \"%s\" excludes key \"%s\" of the same call",
                           pnstrdup(key.bytes, key.length), pnstrdup(other.bytes, other.length)),
                    errhint("The lease of a path covers what is below it.")));
}

// Of shared leases, too: a waiter for the lower key would be in the way of the call that it waits
// for.
static void check_overlaps(const Many& many) {
    for (int i = 1; i < many.count; i++)
        if (is_ancestor(many.requests[i - 1].key, many.requests[i].key))
            raise_overlap(many.requests[i - 1].key, many.requests[i].key);
}

static Many read_many(const Arguments& arguments, LeaseDatabase* database) {
    ArrayType* array = DatumGetArrayTypeP(arguments.required(0, "keys"));
    Datum* values;
    bool* nulls;
    Many many = {};
    deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &many.given);
    check_lease_count(many.given, "acquire_leases");
    LeaseRequest request = {};
    request.role = GetUserId();
    request.mode = lease_mode_argument(arguments, 4);
    request.bond = LeaseBond::kCall;
    many.bond = lease_bond_argument(arguments, 5);
    request.resumes = many.resumes = arguments.boolean(6, "resume");
    if (many.resumes)
        (void)arguments.required(3, "holder");
    request.ttl = ttl_argument(arguments, 1);
    request.holder = holder_argument(arguments, 3, &request.holder_length);
    auto* keys = static_cast<LeaseKey*>(palloc(sizeof(LeaseKey) * (many.given + 1)));
    auto* order = static_cast<int*>(palloc(sizeof(int) * (many.given + 1)));
    for (int i = 0; i < many.given; i++) {
        if (nulls[i])
            refuse_nulls("keys", "array_remove(keys, NULL) leaves nulls out.");
        keys[i] = lease_key_argument(DatumGetTextPP(values[i]), i + 1);
        order[i] = i;
    }
    qsort_arg(order, many.given, sizeof(int), order_of_paths, keys);
    many.database = database;
    many.requests = static_cast<LeaseRequest*>(palloc(sizeof(LeaseRequest) * (many.given + 1)));
    many.position = static_cast<int*>(palloc(sizeof(int) * (many.given + 1)));
    many.tokens = static_cast<int64*>(palloc0(sizeof(int64) * (many.given + 1)));
    for (int i = 0; i < many.given; i++) {
        request.key = keys[order[i]];
        if (many.count == 0 || compare_keys(many.requests[many.count - 1].key, request.key) != 0)
            many.requests[many.count++] = request;
        many.position[order[i]] = many.count - 1;
    }
    check_overlaps(many);
    return many;
}

// --- Granting ------------------------------------------------------------------------------------

// Releases the leases of the call, which were not returned to the client yet. After an error the
// store is not touched: the record of a long one stays until something in its way is requested.
static void give_back_granted(int, Datum argument) {
    auto* many = reinterpret_cast<Many*>(DatumGetPointer(argument));
    for (int i = 0; i < many->count; i++) {
        if (many->tokens[i] != 0)
            (void)end_lease_of(many->database, many->requests[i].key, many->tokens[i],
                               LeaseEnd::kGivenBack);
        many->tokens[i] = 0;
    }
}

// One after the other, in order, until one is refused.
static LeaseAnswer take_in_order(Many* many, const Deadline& deadline) {
    LeaseAnswer answer;
    for (int i = 0; i < many->count; i++) {
        many->requests[i].has_others = i > 0;
        answer = acquire_lease_for(many->database, many->requests[i], deadline);
        many->tokens[i] = answer.token;
        many->refused = i;
        if (answer.outcome != LeaseOutcome::kAcquired)
            break;
    }
    return answer;
}

// After a cancel, with the records that are there.
[[noreturn]] static void give_back_all(const Many& many) {
    for (int i = 0; i < many.count; i++)
        give_back_recorded(many.database, many.requests[i].key, many.tokens[i]);
    raise_not_on_standbys();
}

// The end of the ttl for leases with records, which are durable before it begins.
static int64 record_all(const Many& many, int64 ttl) {
    for (int64 reserve = kRecordReserve;;) {
        int64 began = monotonic_now();
        int64 until = began + ttl + reserve;
        for (int i = 0; i < many.count; i++)
            if (write_record(many.database, many.requests[i].key, many.tokens[i], until) ==
                RecordWrite::kCanceled)
                give_back_all(many);
        check_client();
        int64 expires = monotonic_now() + ttl;
        if (expires <= until)
            return expires;
        reserve = 2 * (monotonic_now() - began);
    }
}

// For others the horizon is durable before it.
static int64 cover_all(const Many& many, int64 ttl) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        int64 expires = monotonic_now() + ttl;
        if (covers(many.database, expires))
            return expires;
        make_durable(many.database, ttl);
    }
}

// Whether all leases of the call are held still: one can be broken, or released by its holder's
// name, while others are waited for or become durable. Runs body(Ref) for each.
template <typename Body>
static bool holds_all(const Many& many, Body&& body) {
    int held = 0;
    for (int i = 0; i < many.count; i++)
        with_lease(many.requests[i].key, many.tokens[i], [&](Ref lease) {
            if (lease == 0 || lease_at(lease)->ended)
                return;
            body(lease);
            held++;
        });
    return held == many.count;
}

// Sets the expiry of the leases of the call, and returns it; 0: one of them is gone.
static int64 begin_time(const Many& many) {
    int64 ttl = many.requests[0].ttl;
    int64 expires = ttl > longest_short_lease() ? record_all(many, ttl) : cover_all(many, ttl);
    int64 span = expires - monotonic_now();
    bool holds = holds_all(many, [&](Ref ref) {
        Lease* lease = lease_at(ref);
        lease->expires = expires;
        lease->span = span;
        lease->pid = 0;
        drop_if_ended_and_serve(ref); // its waiters, and tickets, know of no end yet
    });
    return holds ? expires : 0;
}

// The same for leases that end with the session.
static int64 bind_all(const Many& many) {
    if (!holds_all(many, [](Ref) {}))
        return 0;
    for (int i = 0; i < many.count; i++)
        bind_lease(many.requests[i].key, many.tokens[i]);
    return kNeverExpires;
}

// The holder has all of them, as after an answer that was lost: they are renewed.
static bool resume_all(Many* many, LeaseAnswer* answer) {
    auto* leases = static_cast<LeaseToken*>(palloc(sizeof(LeaseToken) * many->count));
    for (int i = 0; i < many->count; i++) {
        LeaseRequest request = many->requests[i];
        request.bond = many->bond;
        leases[i] = {request.key, token_of_request(request)};
        if (leases[i].token == 0)
            return false;
    }
    LeaseRenewal renewal = {many->requests[0].ttl};
    int64 expires = renew_leases_of(many->database, leases, many->count, renewal);
    if (expires == 0)
        return false;
    for (int i = 0; i < many->count; i++)
        many->tokens[i] = leases[i].token;
    answer->outcome = LeaseOutcome::kResumed;
    answer->expires = expires;
    return true;
}

static pg_noinline LeaseAnswer acquire_all(Many* many, const Deadline& deadline) {
    LeaseAnswer answer;
    bool is_bound = many->bond == LeaseBond::kSession;
    if (is_bound)
        prepare_to_bind(many->count);
    Datum argument = PointerGetDatum(many);
    PG_ENSURE_ERROR_CLEANUP(give_back_granted, argument);
    {
        for (bool is_over = false; !is_over;) {
            CHECK_FOR_INTERRUPTS();
            answer = take_in_order(many, deadline);
            if (answer.outcome == LeaseOutcome::kAcquired)
                answer.expires = is_bound ? bind_all(*many) : begin_time(*many);
            is_over = answer.outcome != LeaseOutcome::kAcquired || answer.expires != 0;
            if (!is_over) // all of them or none: begins again
                give_back_granted(0, argument);
        }
    }
    PG_END_ENSURE_ERROR_CLEANUP(give_back_granted, argument);
    if (answer.outcome != LeaseOutcome::kAcquired)
        give_back_granted(0, argument);
    for (int i = 0; i < many->count && many->tokens[i] != 0; i++) {
        const LeaseRequest& request = many->requests[i];
        note_named_grant(request.key, request.role, {request.holder, request.holder_length},
                         many->tokens[i]);
    }
    return answer;
}

static bool has_leases(const LeaseAnswer& answer) {
    return answer.outcome == LeaseOutcome::kAcquired || answer.outcome == LeaseOutcome::kResumed;
}

// The key that has stopped the call has its answer, the others were acquired or not asked for.
static void count_answers(const Many& many, const LeaseAnswer& answer) {
    bool acquired = has_leases(answer);
    for (int i = 0; i < many.count; i++)
        if (acquired || i != many.refused)
            count(line_of(many.requests[i].key), Counter::kCalls);
    if (many.count > 0 && !acquired)
        count_answer(many.requests[many.refused].key, answer);
}

// outcome, tokens, expires_at, blocked_by, holder
static Datum many_result(FunctionCallInfo fcinfo, const Many& many, const LeaseAnswer& answer) {
    bool acquired = has_leases(answer);
    auto* tokens = static_cast<Datum*>(palloc(sizeof(Datum) * (many.given + 1)));
    for (int i = 0; i < many.given; i++)
        tokens[i] = Int64GetDatum(many.tokens[many.position[i]]);
    Datum values[5] = {CStringGetTextDatum(lease_outcome_name(answer.outcome))};
    bool nulls[5] = {false, !acquired, answer.expires == 0, true, true};
    if (acquired)
        values[1] = PointerGetDatum(construct_array(tokens, many.given, INT8OID, sizeof(int64),
                                                    FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
    if (answer.expires != 0)
        values[2] = TimestampTzGetDatum(shown_time(answer.expires));
    if (answer.outcome == LeaseOutcome::kHeld) {
        const LeaseKey& key = many.requests[many.refused].key;
        values[3] =
            PointerGetDatum(cstring_to_text_with_len(key.bytes, static_cast<int>(key.length)));
        values[4] = CStringGetTextDatum(answer.holder);
        nulls[3] = nulls[4] = false;
    }
    return result_row(fcinfo, values, nulls);
}

} // namespace interlock::lease

// acquire_leases: several keys, all of them or none.

#include "lease/argument.h"
#include "lease/beside.h"
#include "lease/named.h"
#include "server/arguments.h"
#include "server/client.h"
#include "server/result_row.h"

using namespace interlock;

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
    int refused; // the request that stopped the call, and why
    Decision decision;
    LeaseRoom room;
    RoomSearch search;
    Ref served; // the tree whose queue was served last, and by which look; 0: none was yet
    uint32 look;
};

Many read_many(const Arguments& arguments, LeaseDatabase* database);
LeaseAnswer acquire_all(Many* many, const Deadline& deadline);
bool resume_all(Many* many, LeaseAnswer* answer);
void count_answers(const Many& many, const LeaseAnswer& answer);
Datum many_result(FunctionCallInfo fcinfo, const Many& many, const LeaseAnswer& answer);

} // namespace

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

namespace {

// --- Arguments -----------------------------------------------------------------------------------

int order_of_paths(const void* left, const void* right, void* keys) {
    const auto& a = static_cast<LeaseKey*>(keys)[*static_cast<const int*>(left)];
    const auto& b = static_cast<LeaseKey*>(keys)[*static_cast<const int*>(right)];
    return compare_keys(a, b);
}

[[noreturn]] void raise_overlap(const LeaseKey& key, const LeaseKey& other) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("key \"%s\" excludes key \"%s\" of the same call",
                           pnstrdup(key.bytes, key.length), pnstrdup(other.bytes, other.length)),
                    errhint("The lease of a path covers what is below it.")));
}

// Of shared leases, too: a waiter for the lower key would be in the way of the call that it waits
// for.
void check_overlaps(const Many& many) {
    for (int i = 1; i < many.count; i++)
        if (is_ancestor(many.requests[i - 1].key, many.requests[i].key))
            raise_overlap(many.requests[i - 1].key, many.requests[i].key);
}

Many read_many(const Arguments& arguments, LeaseDatabase* database) {
    ArrayType* array = DatumGetArrayTypeP(arguments.required(0, "keys"));
    Datum* values;
    bool* nulls;
    Many many = {};
    deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &many.given);
    check_lease_count(many.given, "acquire_leases");
    LeaseRequest request = {};
    request.role = GetUserId();
    request.mode =
        arguments.is_given(4) ? lease_mode_argument(arguments, 4) : LeaseMode::kExclusive;
    request.bond = LeaseBond::kCall;
    many.bond = arguments.is_given(5) ? lease_bond_argument(arguments, 5) : LeaseBond::kTtl;
    request.resumes = many.resumes = arguments.is_given(6) && arguments.boolean(6, "resume");
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

bool is_last_of_tree(const Many& many, int i) {
    return i + 1 == many.count || !is_same_tree(many.requests[i].key, many.requests[i + 1].key);
}

// A queue takes a walk over all permits that one of its waiters wants: it is served once for all of
// the call's leases in its tree, and not where the call has none.
template <typename Body>
void for_each_lease(const Many& many, Body&& body) {
    bool is_due = false;
    for (int i = 0; i < many.count; i++) {
        const LeaseKey& key = many.requests[i].key;
        if (many.tokens[i] != 0) {
            with_lease(key, many.tokens[i], [&](Ref lease) {
                if (lease != 0)
                    body(lease);
            });
            is_due = true;
        }
        if (!is_due || !is_last_of_tree(many, i))
            continue;
        serve_tree_of(key);
        is_due = false;
    }
}

// Releases the leases of the call, which were not returned to the client yet. After an error the
// store is not touched: the record of a long one stays until something in its way is requested.
void give_back_granted(int, Datum argument) {
    auto* many = reinterpret_cast<Many*>(DatumGetPointer(argument));
    for_each_lease(*many, [&](Ref lease) {
        if (!lease_at(lease)->ended)
            end_lease_without_serving(many->database, lease, LeaseEnd::kGivenBack);
    });
    for (int i = 0; i < many->count; i++)
        many->tokens[i] = 0;
}

template <typename Body>
void for_each_partition(const Many& many, Body&& body) {
    uint64 partitions = 0;
    for (int i = 0; i < many.count; i++)
        partitions |= UINT64CONST(1) << many.requests[i].key.partition;
    for (int i = 0; i < kLeasePartitions; i++)
        if ((partitions >> i & 1) != 0)
            body(partition_lock(i));
}

enum class Attempt { kDone, kRefused, kNeedsWork, kNoRoom };

// The queue of a tree is served for the first of its keys. What waits there keeps waiting while all
// partitions are locked, so another key has to be compared with it alone.
Decision decide_next(Many* many, const LeaseRequest& request, LeaseWaiter* waiter) {
    const LeaseClaim& claim = waiter->claim;
    Ref root = root_of(claim.node);
    if (root == many->served && has_queue(root) &&
        !is_behind(claim.node, lease_at(claim.lease)->mode, many->look))
        return decide(&waiter->claim, monotonic_now());
    Decision decision = decide_in_turn(waiter, request);
    many->served = root;
    many->look = last_look(claim.partition);
    return decision;
}

// With the lock of its partition held.
Attempt try_one(Many* many, int i, LeaseAnswer* answer) {
    LeaseWaiter* waiter = this_waiter();
    many->room = make_claim(many->database, many->requests[i], many->search.access, &waiter->claim);
    if (many->room != LeaseRoom::kYes)
        return Attempt::kNoRoom;
    Decision decision = decide_next(many, many->requests[i], waiter);
    if (decision.verdict == Verdict::kGranted) {
        many->tokens[i] = granted_answer(waiter->claim).token;
        release_node(waiter->claim.node);
        return Attempt::kDone;
    }
    *answer = refused_answer(decision, waiter->claim);
    many->refused = i;
    many->decision = decision;
    drop_claim(waiter->claim);
    return needs_work(decision) ? Attempt::kNeedsWork : Attempt::kRefused;
}

// The first leases. A waiter may have seen one of them in its way, and no ticket; each queue is
// served once.
void take_back(Many* many, int granted) {
    for (int i = 0; i < granted; i++) {
        drop_lease(find_lease(find_node(many->requests[i].key), many->tokens[i]));
        many->tokens[i] = 0;
    }
    for (int i = 0; i < granted; i++) {
        if (i + 1 < granted && !is_last_of_tree(*many, i))
            continue;
        Ref root = find_root(many->requests[i].key);
        if (root != 0 && has_queue(root))
            serve_queue(root, nullptr);
    }
}

// No other process sees only some of them granted: all partitions are locked meanwhile.
Attempt try_together(Many* many, LeaseAnswer* answer) {
    Attempt attempt = Attempt::kDone;
    for_each_partition(*many, [](LWLock* lock) { LWLockAcquire(lock, LW_EXCLUSIVE); });
    int granted = 0;
    many->served = 0;
    while (granted < many->count && attempt == Attempt::kDone) {
        attempt = try_one(many, granted, answer);
        granted += attempt == Attempt::kDone ? 1 : 0;
    }
    if (attempt != Attempt::kDone)
        take_back(many, granted);
    for_each_partition(*many, [](LWLock* lock) { LWLockRelease(lock); });
    return attempt;
}

// One after the other, in order, so that two calls never wait for each other.
LeaseAnswer take_in_order(Many* many, const Deadline& deadline) {
    LeaseAnswer answer;
    int tree = 0; // the first one of it
    for (int i = 0; i < many->count; i++) {
        LeaseRequest* request = &many->requests[i];
        if (!is_same_tree(many->requests[tree].key, request->key))
            tree = i;
        request->beside = &many->requests[tree];
        request->beside_count = i - tree;
        answer = acquire_lease_for(many->database, *request, deadline);
        many->tokens[i] = answer.token;
        many->refused = i;
        if (answer.outcome != LeaseOutcome::kAcquired)
            break;
    }
    return answer;
}

// At one moment, unless others prevent that: by leases that are lost or over all the time, which
// has to become durable first.
LeaseAnswer take_at_once(Many* many, const Deadline& deadline) {
    constexpr int kMostWork = 16;
    LeaseAnswer answer;
    for (int work = 0; work < kMostWork;) {
        answer.outcome = LeaseOutcome::kAcquired;
        Attempt attempt = try_together(many, &answer);
        if (attempt == Attempt::kDone || attempt == Attempt::kRefused)
            return answer;
        if (attempt == Attempt::kNeedsWork) {
            do_work(many->database, many->requests[many->refused], many->decision);
            work++;
            continue;
        }
        find_room(many->database, many->room, many->requests[0].role, &many->search);
    }
    return take_in_order(many, deadline);
}

// After a cancel, with the records that are there.
[[noreturn]] void give_back_all(const Many& many) {
    for (int i = 0; i < many.count; i++)
        give_back_recorded(many.database, many.requests[i].key, many.tokens[i]);
    raise_not_on_standbys();
}

// The end of the ttl for leases with records, which are durable before it begins.
int64 record_all(const Many& many, int64 ttl) {
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
int64 cover_all(const Many& many, int64 ttl) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        int64 expires = monotonic_now() + ttl;
        if (covers(many.database, expires))
            return expires;
        make_durable(many.database, ttl);
    }
}

// Whether all leases of the call are held still: one can be broken, or released by its holder's
// name, while others are waited for or become durable. Runs body(Lease*) for each.
template <typename Body>
bool holds_all(const Many& many, Body&& body) {
    int held = 0;
    for_each_lease(many, [&](Ref lease) {
        if (lease_at(lease)->ended)
            return;
        body(lease_at(lease));
        held++;
    });
    return held == many.count;
}

// Sets the expiry of the leases of the call, and returns it; 0: one of them is gone.
int64 begin_time(const Many& many) {
    int64 ttl = many.requests[0].ttl;
    int64 expires = ttl > longest_short_lease() ? record_all(many, ttl) : cover_all(many, ttl);
    int64 span = expires - monotonic_now();
    bool holds = holds_all(many, [&](Lease* lease) {
        lease->expires = expires;
        lease->span = span;
        lease->pid = 0;
    });
    return holds ? expires : 0;
}

// The same for leases that end with the session.
int64 bind_all(const Many& many) {
    if (!holds_all(many, [](Lease*) {}))
        return 0;
    for (int i = 0; i < many.count; i++)
        bind_lease(many.requests[i].key, many.tokens[i]);
    return kNeverExpires;
}

// The holder has all of them, as after an answer that was lost: they are renewed.
bool resume_all(Many* many, LeaseAnswer* answer) {
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

pg_noinline LeaseAnswer acquire_all(Many* many, const Deadline& deadline) {
    LeaseAnswer answer;
    bool is_bound = many->bond == LeaseBond::kSession;
    if (is_bound)
        prepare_to_bind(many->count);
    Datum argument = PointerGetDatum(many);
    PG_ENSURE_ERROR_CLEANUP(give_back_granted, argument);
    {
        for (bool is_over = false; !is_over;) {
            CHECK_FOR_INTERRUPTS();
            answer = deadline.has_passed() ? take_at_once(many, deadline)
                                           : take_in_order(many, deadline);
            if (answer.outcome == LeaseOutcome::kAcquired)
                answer.expires = is_bound ? bind_all(*many) : begin_time(*many);
            is_over = answer.outcome != LeaseOutcome::kAcquired || answer.expires != 0;
            if (!is_over) // all of them or none: begins anew
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

bool has_leases(const LeaseAnswer& answer) {
    return answer.outcome == LeaseOutcome::kAcquired || answer.outcome == LeaseOutcome::kResumed;
}

// The key that has stopped the call has its answer, the others were acquired or not asked for.
void count_answers(const Many& many, const LeaseAnswer& answer) {
    bool acquired = has_leases(answer);
    for (int i = 0; i < many.count; i++)
        if (acquired || i != many.refused)
            count(line_of(many.requests[i].key), Counter::kCalls);
    if (many.count > 0 && !acquired)
        count_answer(many.requests[many.refused].key, answer);
}

// outcome, tokens, expires_at, blocked_by, holder
Datum many_result(FunctionCallInfo fcinfo, const Many& many, const LeaseAnswer& answer) {
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

} // namespace

#include "lease/lease.h"

#include "lease/argument.h"
#include "lease/clean_restart.h"
#include "lease/errors.h"
#include "lease/token_role.h"
#include "server/lone_call.h"
#include "server/result_row.h"
#include "server/shared_memory.h"

namespace interlock::lease {

namespace {

// The numbers of arguments.
struct AcquireArguments {
    int holder;
    int resume;
    int notify;
};

} // namespace

static Datum acquire(FunctionCallInfo fcinfo, LeaseRequest* request, const Deadline& deadline,
                     const AcquireArguments& at);
static Datum release_by_holder(const Arguments& arguments, const LeaseKey& key);
static int64 renew_by_holder(const LeaseKey& key, const LeaseRenewal& renewal);

extern "C" {

PG_FUNCTION_INFO_V1(acquire_lease);
PG_FUNCTION_INFO_V1(acquire_permit);
PG_FUNCTION_INFO_V1(renew_lease);
PG_FUNCTION_INFO_V1(release_lease);
PG_FUNCTION_INFO_V1(assert_lease);

// acquire_lease(key, ttl, wait, holder, mode, bind, resume, at_least, notify)
Datum acquire_lease(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LeaseRequest request = {};
    request.key = lease_key_argument(DatumGetTextPP(arguments.required(0, "key")));
    request.ttl = ttl_argument(arguments, 1);
    Deadline deadline = Deadline::argument(arguments, 2);
    request.mode = lease_mode_argument(arguments, 4);
    request.bond = lease_bond_argument(arguments, 5);
    request.at_least = at_least_argument(arguments, 7, request.ttl);
    if (!arguments.is_null(7) && request.bond != LeaseBond::kTtl)
        refuse_at_least_of_session();
    return acquire(fcinfo, &request, deadline, {.holder = 3, .resume = 6, .notify = 8});
}

// acquire_permit(key, capacity, ttl, wait, holder, bind, resume, notify)
Datum acquire_permit(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LeaseRequest request = {};
    request.key = lease_key_argument(DatumGetTextPP(arguments.required(0, "key")));
    request.mode = LeaseMode::kPermit;
    int32 capacity = above_zero(DatumGetInt32(arguments.required(1, "capacity")), "capacity");
    request.capacity = Min(capacity, kMaxCapacity);
    request.ttl = ttl_argument(arguments, 2);
    Deadline deadline = Deadline::argument(arguments, 3);
    request.bond = lease_bond_argument(arguments, 5);
    return acquire(fcinfo, &request, deadline, {.holder = 4, .resume = 6, .notify = 7});
}

// renew_lease(key, token, ttl, holder, at_least)
Datum renew_lease(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LeaseKey key = lease_key_argument(DatumGetTextPP(arguments.required(0, "key")));
    LeaseRenewal renewal = {arguments.is_null(2) ? 0 : ttl_argument(arguments, 2)};
    if (!arguments.is_null(4) && renewal.ttl == 0)
        refuse_argument("at_least", "needs a ttl");
    renewal.at_least = at_least_argument(arguments, 4, renewal.ttl);
    size_t length = 0;
    const char* holder = arguments.is_null(3) ? "" : holder_argument(arguments, 3, &length);
    renewal.holder = {holder, length};
    int64 expires;
    if (arguments.is_null(1) && length > 0)
        expires = renew_by_holder(key, renewal);
    else
        expires = renew_lease_of(lease_database(), key,
                                 DatumGetInt64(arguments.required(1, "token")), renewal);
    if (expires == 0)
        PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(shown_time(expires));
}

// release_lease(key, token, holder)
Datum release_lease(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LeaseKey key = lease_key_argument(DatumGetTextPP(arguments.required(0, "key")));
    if (!arguments.is_null(2))
        return release_by_holder(arguments, key);
    int64 token = DatumGetInt64(arguments.required(1, "token"));
    PG_RETURN_BOOL(release_lease_of(lease_database(), key, token));
}

// assert_lease(key, token)
Datum assert_lease(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LeaseKey key = lease_key_argument(DatumGetTextPP(arguments.required(0, "key")));
    int64 token = DatumGetInt64(arguments.required(1, "token"));
    lease_database();
    LineRef line = line_of(key);
    count(line, Counter::kCalls);
    if (!pin_lease(key, token)) {
        count(line, Counter::kRefusals);
        raise_not_held(key, token);
    }
    warn_if_routed(fcinfo, "the lease is no longer asserted",
                   "Call the function in the transaction that writes.");
    PG_RETURN_VOID();
}
}

namespace {

// A text for a value of a row, into which it is copied.
struct RowText {
    alignas(int32) char bytes[VARHDRSZ + kMaxHolderBytes];

    Datum set(const char* value) {
        size_t length = strlen(value);
        SET_VARSIZE(bytes, VARHDRSZ + length);
        memcpy(bytes + VARHDRSZ, value, length);
        return PointerGetDatum(bytes);
    }
};

} // namespace

// outcome, token, expires_at, holder, ticket
static Datum answer_row(FunctionCallInfo fcinfo, const LeaseAnswer& answer, int64 ticket) {
    RowText outcome;
    RowText holder;
    Datum values[5] = {outcome.set(lease_outcome_name(answer.outcome)), Int64GetDatum(answer.token),
                       TimestampTzGetDatum(shown_time(answer.expires)), holder.set(answer.holder),
                       Int64GetDatum(ticket)};
    bool nulls[5] = {false, answer.token == 0, answer.expires == 0, answer.holder[0] == '\0',
                     ticket == 0};
    return result_row(fcinfo, values, nulls);
}

static Datum acquire(FunctionCallInfo fcinfo, LeaseRequest* request, const Deadline& deadline,
                     const AcquireArguments& at) {
    Arguments arguments(fcinfo);
    request->role = GetUserId();
    request->holder = holder_argument(arguments, at.holder, &request->holder_length);
    request->resumes = arguments.boolean(at.resume, "resume");
    bool notifies = arguments.boolean(at.notify, "notify");
    if (request->resumes || notifies)
        (void)arguments.required(at.holder, "holder");
    int64 ticket = 0;
    LeaseAnswer answer;
    if (notifies)
        answer = acquire_or_ask(lease_database(), *request, deadline, &ticket);
    else if (request->resumes)
        answer = resume_or_acquire(lease_database(), *request, deadline);
    else
        answer = acquire_lease_for(lease_database(), *request, deadline);
    count_answer(request->key, answer);
    return answer_row(fcinfo, answer, ticket);
}

// A caller without a token has no lease, or one of its name, or a ticket.
static pg_noinline Datum release_by_holder(const Arguments& arguments, const LeaseKey& key) {
    if (!arguments.is_null(1))
        refuse_argument("holder", "must not be given with a token");
    size_t length;
    const char* holder = holder_argument(arguments, 2, &length);
    LeaseDatabase* database = lease_database();
    (void)withdraw_tickets(key, {holder, length}); // before a release would notify it
    bool was_held = false;
    ListCell* cell;
    foreach (cell, tokens_of_name(database, key, {holder, length})) {
        int64 token = static_cast<const HeldToken*>(lfirst(cell))->token;
        was_held = release_lease_of(database, key, token) || was_held;
    }
    PG_RETURN_BOOL(was_held);
}

// The earliest expiry of all that are of the name; 0: none is.
static pg_noinline int64 renew_by_holder(const LeaseKey& key, const LeaseRenewal& renewal) {
    LeaseDatabase* database = lease_database();
    int64 first = 0;
    ListCell* cell;
    foreach (cell, tokens_of_name(database, key, renewal.holder)) {
        int64 token = static_cast<const HeldToken*>(lfirst(cell))->token;
        int64 expires = renew_lease_of(database, key, token, renewal);
        if (expires != 0 && (first == 0 || expires < first))
            first = expires;
    }
    return first;
}

// ---- arguments and results ----------------------------------------------------------------------

const char* lease_outcome_name(LeaseOutcome outcome) {
    switch (outcome) {
    case LeaseOutcome::kAcquired:
        return "acquired";
    case LeaseOutcome::kResumed:
        return "resumed";
    case LeaseOutcome::kHeld:
        return "held";
    case LeaseOutcome::kRecovering:
        return "recovering";
    }
    return nullptr;
}

// ---- memory -------------------------------------------------------------------------------------

namespace {

struct Area {
    const char* name;
    size_t (*size)();
    void (*attach)(void* memory, bool found);
};

} // namespace

constexpr Area kAreas[] = {
    {"pg_interlock lease usage", lease_usage_size, attach_lease_usage},
    {"pg_interlock lease memory", lease_memory_size, attach_lease_memory},
    {"pg_interlock lease table", lease_table_size, attach_lease_table},
    {"pg_interlock lease queue", lease_queue_size, attach_lease_queue},
    {"pg_interlock lease service", lease_service_size, attach_lease_service},
};

static void request_memory() {
    for (const Area& area : kAreas)
        RequestAddinShmemSpace(MAXALIGN(area.size()) + kMemoryUnit);
    RequestNamedLWLockTranche(kLeaseTranche, kLeasePartitions);
}

static void attach_memory() {
    bool found = false;
    for (const Area& area : kAreas)
        area.attach(ShmemInitStruct(area.name, area.size(), &found), found);
    if (!found)
        restore_leases();
}

void preload_leases() {
    DefineCustomIntVariable("interlock.max_leases", "How many leases there can be at once.",
                            "Each takes about 260 bytes of shared memory, more with a long key.",
                            &max_leases, 65536, 64, 16 * 1024 * 1024, PGC_POSTMASTER, 0, nullptr,
                            nullptr, nullptr);
    add_shared_area({request_memory, attach_memory});
}

} // namespace interlock::lease

// renew_leases: several leases, all of them or none.

#include "lease/argument.h"
#include "lease/renew.h"
#include "lease/role.h"

using namespace interlock;

namespace {

struct LeaseTokens {
    LeaseToken* leases;
    int count;
};

LeaseTokens read_tokens(const Arguments& arguments);

} // namespace

extern "C" {
PG_FUNCTION_INFO_V1(renew_leases);

// renew_leases(keys, tokens, ttl, holder)
Datum renew_leases(PG_FUNCTION_ARGS) {
    Arguments arguments(fcinfo);
    LeaseTokens all = read_tokens(arguments);
    LeaseRenewal renewal = {arguments.is_null(2) ? 0 : ttl_argument(arguments, 2)};
    size_t length = 0;
    const char* holder = arguments.is_null(3) ? "" : holder_argument(arguments, 3, &length);
    renewal.holder = {holder, length};
    int64 expires = renew_leases_of(lease_database(), all.leases, all.count, renewal);
    if (expires == 0)
        PG_RETURN_NULL();
    PG_RETURN_TIMESTAMPTZ(shown_time(expires));
}
}

namespace {

LeaseTokens read_tokens(const Arguments& arguments) {
    ArrayType* key_array = DatumGetArrayTypeP(arguments.required(0, "keys"));
    ArrayType* token_array = DatumGetArrayTypeP(arguments.required(1, "tokens"));
    Datum* keys;
    Datum* tokens;
    bool* no_key;
    bool* no_token;
    int count;
    int token_count;
    deconstruct_array(key_array, TEXTOID, -1, false, TYPALIGN_INT, &keys, &no_key, &count);
    deconstruct_array(token_array, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
                      &tokens, &no_token, &token_count);
    check_lease_count(count, "renew_leases");
    if (count != token_count)
        refuse_argument("tokens", "must have as many elements as keys");
    auto* leases = static_cast<LeaseToken*>(palloc(sizeof(LeaseToken) * (count + 1)));
    for (int i = 0; i < count; i++) {
        if (no_key[i])
            refuse_nulls("keys");
        if (no_token[i])
            refuse_nulls("tokens");
        leases[i] = {lease_key_argument(DatumGetTextPP(keys[i]), i + 1), DatumGetInt64(tokens[i])};
    }
    return {leases, count};
}

} // namespace

namespace interlock {

namespace {

// Of each of the leases.
struct NewExpiry {
    int64 ttl;
    int64 expires;
    bool is_late;
    bool has_record;
};

template <typename Body>
void for_each_partition(const LeaseToken* leases, int count, Body&& body) {
    uint64 partitions = 0;
    for (int i = 0; i < count; i++)
        partitions |= UINT64CONST(1) << leases[i].key.partition;
    for (int i = 0; i < kLeasePartitions; i++)
        if ((partitions >> i & 1) != 0)
            body(partition_lock(i));
}

// Whether each is in memory and the caller's. One from before a crash is reclaimed.
bool finds_all(LeaseDatabase* database, const LeaseToken* leases, int count,
               const LeaseRenewal& renewal) {
    for (int i = 0; i < count; i++) {
        CHECK_FOR_INTERRUPTS();
        bool is_there = false;
        with_own_lease(leases[i].key, leases[i].token, LW_SHARED,
                       [&](Ref lease) { is_there = lease != 0; });
        if (!is_there && renew_lease_of(database, leases[i].key, leases[i].token, renewal) == 0)
            return false;
    }
    return true;
}

Ref find(const LeaseToken& lease) { return find_lease(find_node(lease.key), lease.token); }

// With the locks of all partitions held. Other than kDone: of the first that cannot be renewed.
Renewal renew_all(LeaseDatabase* database, const LeaseToken* leases, int count, int64 ttl,
                  NewExpiry* renewed) {
    for (int i = 0; i < count; i++) {
        Ref lease = find(leases[i]);
        renewed[i].ttl = ttl != 0 || lease == 0 ? ttl : lease_at(lease)->ttl;
        Renewal can = can_renew(database, lease, renewed[i].ttl, 0, &renewed[i].expires);
        if (can != Renewal::kDone)
            return can;
    }
    for (int i = 0; i < count; i++) {
        Ref lease = find(leases[i]);
        renewed[i].has_record = has_record(*lease_at(lease));
        renewed[i].is_late = extend_lease(lease, renewed[i].ttl, 0, renewed[i].expires);
    }
    return Renewal::kDone;
}

// Of those that were looked at so far, as far as a horizon reaches.
int64 longest_of(const NewExpiry* renewed, int count) {
    int64 longest = 1;
    for (int i = 0; i < count; i++)
        longest = Max(longest, Max(renewed[i].ttl, renewed[i].expires - monotonic_now()));
    return Min(longest, longest_short_lease());
}

} // namespace

int64 renew_leases_of(LeaseDatabase* database, const LeaseToken* leases, int count,
                      const LeaseRenewal& renewal) {
    auto* renewed = static_cast<NewExpiry*>(palloc0(sizeof(NewExpiry) * (count + 1)));
    for (Renewal done = Renewal::kUnknown; done != Renewal::kDone;) {
        CHECK_FOR_INTERRUPTS();
        if (!finds_all(database, leases, count, renewal))
            return 0;
        for_each_partition(leases, count, [](LWLock* lock) { LWLockAcquire(lock, LW_EXCLUSIVE); });
        done = renew_all(database, leases, count, renewal.ttl, renewed);
        for_each_partition(leases, count, [](LWLock* lock) { LWLockRelease(lock); });
        if (done == Renewal::kLost)
            return 0;
        if (done == Renewal::kNotDurable)
            make_durable(database, longest_of(renewed, count));
    }
    int64 first = kNeverExpires;
    for (int i = 0; i < count; i++) {
        const LeaseKey& key = leases[i].key;
        count_renewal(key, renewed[i].is_late);
        int64 expires = renewed[i].expires;
        if (expires != kNeverExpires && (renewed[i].has_record || !covers(database, expires)))
            expires = record_lease(database, key, leases[i].token, renewed[i].ttl, expires);
        if (expires == 0)
            return 0;
        first = Min(first, expires);
    }
    return first;
}

} // namespace interlock

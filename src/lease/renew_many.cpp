// renew_leases: several leases, all of them or none.

#include "lease/argument.h"
#include "lease/lease.h"

namespace interlock::lease {

namespace {

struct LeaseTokens {
    LeaseToken* leases;
    int count;
};

} // namespace

static LeaseTokens read_tokens(const Arguments& arguments);

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

static LeaseTokens read_tokens(const Arguments& arguments) {
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

} // namespace interlock::lease

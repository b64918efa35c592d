#include "lease/token.h"

namespace interlock::lease {

SipKey new_secret() {
    SipKey secret = {};
    while (!is_set(secret))
        if (!pg_strong_random(&secret, sizeof(secret)))
            ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                            errmsg("could not generate the secret of lease tokens")));
    return secret;
}

int64 make_token(const SipKey& secret, const TokenScope& scope, int64 first, LeaseMode mode) {
    constexpr uint64 kMacMask = (1 << kTokenMacBits) - 1;
    uint64 token = static_cast<uint64>(first) | static_cast<uint64>(mode);
    SipHash hash(secret);
    hash.add(static_cast<uint64>(scope.database) << 32 | scope.role);
    hash.add(token);
    uint64 mac = hash.finish(scope.key, scope.key_length) & kMacMask;
    return static_cast<int64>(token | mac << kTokenModeBits);
}

bool is_genuine(const SipKey& secret, const TokenScope& scope, int64 token) {
    LeaseMode mode = mode_of_token(token);
    return mode <= LeaseMode::kPermit &&
           make_token(secret, scope, token & ~(kTokenStep - 1), mode) == token;
}

} // namespace interlock::lease

// The token of a lease, which proves who has it:
//
//   63                    18 17              2 1    0
//   +-----------------------+-----------------+------+
//   |        counter        |       MAC       | mode |
//   +-----------------------+-----------------+------+
//
// The counter only grows, and so does the token. After a crash nothing is left of a short lease but
// the token that its holder has. The mode is needed to reclaim the lease. The MAC shows that the
// token was granted to this role, for this key of this database, and in this mode. A guess is right
// with a probability of 2^-16, and guesses are counted (lease/token_role.h).
#pragma once

#include "lease/lease_table.h"
#include "server/siphash.h"

namespace interlock::lease {

constexpr int kTokenModeBits = 2;
constexpr int kTokenMacBits = 16;
constexpr int64 kTokenStep = INT64CONST(1) << (kTokenModeBits + kTokenMacBits);

// The key of the MAC. Zero: it is not set yet.
inline bool is_set(const SipKey& secret) { return (secret.words[0] | secret.words[1]) != 0; }

// Raises XX000 if the server has no random numbers.
SipKey new_secret();

// The scope for which a token is valid.
struct TokenScope {
    Oid database;
    Oid role;
    const char* key;
    size_t key_length;
};

// `first` is the counter, shifted to its place. Allocates nothing and raises nothing.
int64 make_token(const SipKey& secret, const TokenScope& scope, int64 first, LeaseMode mode);

// Whether make_token() has made the token for the scope.
bool is_genuine(const SipKey& secret, const TokenScope& scope, int64 token);

inline LeaseMode mode_of_token(int64 token) {
    return static_cast<LeaseMode>(token & ((1 << kTokenModeBits) - 1));
}

} // namespace interlock::lease

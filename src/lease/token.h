// The token of a lease, which proves who has it:
//
//   63                    18 17              2 1    0
//   +-----------------------+-----------------+------+
//   |        counter        |       MAC       | mode |
//   +-----------------------+-----------------+------+
//
// The counter only grows, and so does the token. A crash leaves nothing of a short lease but the
// token that the holder comes back with: the mode is needed to have the lease again, and the MAC
// shows that it was given to this role, for this key of this database, and in this mode. A guess is
// right with a probability of 2^-16, and guesses are counted (lease/token_role.h).
#pragma once

#include "lease/lease_table.h"
#include "server/siphash.h"

namespace interlock::lease {

constexpr int kTokenModeBits = 2;
constexpr int kTokenMacBits = 16;
constexpr int64 kTokenStep = INT64CONST(1) << (kTokenModeBits + kTokenMacBits);

// The key of the MAC. Zero: it is not there yet.
inline bool is_set(const SipKey& secret) { return (secret.words[0] | secret.words[1]) != 0; }

// Raises XX000 when the server has no random numbers.
SipKey new_secret();

// What a token is for.
struct TokenScope {
    Oid database;
    Oid role;
    const char* key;
    size_t key_length;
};

// `first` is the counter, shifted to its place. Allocates nothing and raises no error.
int64 make_token(const SipKey& secret, const TokenScope& scope, int64 first, LeaseMode mode);

// Whether make_token has made it for the scope.
bool is_genuine(const SipKey& secret, const TokenScope& scope, int64 token);

inline LeaseMode mode_of_token(int64 token) {
    return static_cast<LeaseMode>(token & ((1 << kTokenModeBits) - 1));
}

} // namespace interlock::lease

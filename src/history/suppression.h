// Suppressing history: scopes in which writes are not recorded, of one table or of all.
//
// Scopes are counted and nest, follow savepoints, and end with the transaction at the latest,
// however it ends. They live in this session's memory: no other session is concerned.
#pragma once

#include "server/server.h"

namespace interlock::history {

struct Suppression {
    bool active;
    const char* reason; // of the innermost scope; null: none given
};

// Whether writes to the table, the one that the history is enabled on, are suppressed now.
Suppression suppression_of(Oid root);

} // namespace interlock::history
